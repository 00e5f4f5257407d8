# bash completion for darkroomd, darkroom-load and darkroom-dataset. Options, keys, values and
# commands come from the programs themselves, so it always matches them.

# Prints the options in the output of --help of a program, or of its command.
_darkroom_options() {
	"$@" --help 2>/dev/null | grep -oE -- '(^|[ ,])(-[a-zA-Z]|--[a-z-]+)([ ,:]|$)' |
		tr -d ' ,:' | sort -u
}

# Prints SECTION.KEY= for every key; stages have their names.
_darkroom_keys() {
	"$1" -T 2>/dev/null |
		awk '/^\[/ { s = substr($0, 2, length($0) - 2) } / =/ { print s "." $1 "=" }'
}

# Prints the values of a key that offers a choice of words: --keys has "(auto, yes or no)".
_darkroom_values() {
	local section=${2%.*} key=${2##*.}
	case $section in stage.* | group.* | variant.*) section=${section%%.*}.NAME ;; esac
	"$1" --keys 2>/dev/null | awk -v section="$section" -v key="$key" '
		{ sub(/^;/, "") }
		/^\[/ { at = substr($0, 2, length($0) - 2) }
		/^ \(/ { may = $0 }
		at == section && $1 == key && $2 == "=" { print may; exit }' |
		sed -n 's/^ (\(one of \)\{0,1\}\([a-z0-9, -]*\)).*/\2/p' |
		sed 's/ or /\n/g; s/, /\n/g' | grep -E '^[a-z][a-z0-9-]*$'
}

# Prints the commands of ctl.
_darkroom_commands() {
	"$1" --help | sed -n '/^Commands of ctl/,$s/^  \([a-z]*\) .*/\1/p'
}

_darkroom_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_darkroomd() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
	local program=${COMP_WORDS[0]} line key i
	compopt +o nospace 2>/dev/null
	COMPREPLY=()
	# bash makes = a word of its own
	line=${COMP_LINE:0:COMP_POINT}
	line=${line##* }
	for ((i = 1; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = ctl ]; then
			case $((COMP_CWORD - i)):${COMP_WORDS[i + 1]} in
			1:*) _darkroom_words "$(_darkroom_commands "$program")" "$word" ;;
			2:policy) _darkroom_words "$(_darkroom_values "$program" scheduler.policy)" "$word" ;;
			2:set) _darkroom_words "$(_darkroom_keys "$program" | tr -d =)" "$word" ;;
			3:set) _darkroom_words "$(_darkroom_values "$program" "$before")" "$word" ;;
			esac
			return
		elif [ "${COMP_WORDS[i]}" = store ]; then
			case $((COMP_CWORD - i)):$before in
			1:*) _darkroom_words "$("$program" store --help | sed -n 's/^Commands: //p')" "$word" ;;
			*:--ids) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
			*) _darkroom_words "$(_darkroom_options "$program" store "${COMP_WORDS[i + 1]}")" "$word" ;;
			esac
			return
		elif [ "${COMP_WORDS[i]}" = token ]; then
			[ $((COMP_CWORD - i)) -lt 2 ] || _darkroom_words "upload delete list own original sign" "$word"
			return
		fi
	done
	case $line in
	*.*=*)
		key=${line%%=*}
		[ "$word" = "=" ] && word=
		_darkroom_words "$(_darkroom_values "$program" "${key#--override}")" "$word"
		return
		;;
	esac
	case $before in
	-c | --config | --trace)
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		compopt -o filenames 2>/dev/null # completes into directories
		;;
	-o | --override)
		_darkroom_words "$(_darkroom_keys "$program")" "$word"
		compopt -o nospace 2>/dev/null
		;;
	*) _darkroom_words "$(_darkroom_options "$program") ctl store token" "$word" ;;
	esac
}

_darkroom_tool() {
	local word=${COMP_WORDS[COMP_CWORD]}
	case $word in
	-*) _darkroom_words "$(_darkroom_options "${COMP_WORDS[0]}")" "$word" ;;
	*) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
	esac
}

complete -F _darkroomd darkroomd
complete -o filenames -F _darkroom_tool darkroom-load darkroom-dataset
