#!/bin/sh
# witness.sh <file> <server…>: runs a server and records its exit status. Clients start servers
# themselves and do not report the status.
file=$1
shift
# A shell redirects the standard input of background processes to /dev/null.
exec 3<&0
"$@" <&3 3<&- &
server=$!
exec 3<&- </dev/null
told=
trap 'told=yes; kill -TERM "$server" 2>/dev/null' TERM
wait "$server"
status=$?
# A signal interrupts the first wait, not the server.
if [ "$told" ] && [ "$status" -gt 128 ]; then
    wait "$server"
    status=$?
fi
echo "$status" >"$file"
