# Makes the units of instances, such as darkroomd@.service of darkroomd.service: several daemons on one
# machine, each with a configuration /etc/darkroom/NAME.ini, and a store /var/lib/darkroom-NAME.
1,/^$/c\
# The instance NAME, which stands behind the @, of several on one machine. Its configuration is\
# /etc/darkroom/NAME.ini.\

s|^Description=.*|& %i|
/^Exec/s|darkroom/darkroomd\.ini|& -o server.root=%S/darkroom-%i|
/^Exec/s|/darkroomd\.ini|/%i.ini|
s/^User=darkroomd$/&-%i/
s|^StateDirectory=darkroom$|&-%i|
s|^LogsDirectory=darkroom$|&-%i|
s|/var/log/darkroom/|/var/log/darkroom-NAME/|
s|/var/lib/darkroom\.|/var/lib/darkroom-NAME.|
