# Makes darkroomd@.service of darkroomd.service: several instances on one machine, each with a
# configuration /etc/darkroom/NAME.ini, and a store /var/lib/darkroom-NAME.
1,2c# darkroomd@.service - darkroomd.service for several instances on one machine.\
# `systemctl enable --now darkroomd@NAME` serves /etc/darkroom/NAME.ini.
s|^Description=.*|& %i|
/^Exec/s|darkroom/darkroomd\.ini|& -o server.root=%S/darkroom-%i|
/^Exec/s|/darkroomd\.ini|/%i.ini|
s|^StateDirectory=darkroom$|&-%i|
s|^LogsDirectory=darkroom$|&-%i|
s|/var/log/darkroom/|/var/log/darkroom-NAME/|
s|/var/lib/darkroom\.|/var/lib/darkroom-NAME.|
