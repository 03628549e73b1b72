#!/bin/sh
# witness.sh <file> <server…>: runs a server and writes its exit status down. Clients start servers
# themselves and keep the status to themselves.
file=$1
shift
# A shell gives /dev/null to what it starts in the background.
exec 3<&0
"$@" <&3 3<&- &
server=$!
exec 3<&- </dev/null
told=
trap 'told=yes; kill -TERM "$server" 2>/dev/null' TERM
wait "$server"
status=$?
# A signal ends the first wait, not the server.
if [ "$told" ] && [ "$status" -gt 128 ]; then
    wait "$server"
    status=$?
fi
echo "$status" >"$file"
