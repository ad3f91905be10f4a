# object_server NAME URL COMMAND...: makes the command $PEERS/bin/NAME, which runs an emulator of an object store. Its
# argument is PORT: in COMMAND and URL, $PORT stands for it. It prints "ready" when URL answers, and ends when standard input
# ends.
object_server() {
    local name=$1 url=$2
    shift 2
    command_named "$name" << SCRIPT
PORT=\$1
exec 3>&1 > /dev/null 2>&1
trap 'kill \$(jobs -p) 2> /dev/null; wait' EXIT
$* &
server=\$!
until curl -s -o /dev/null $url; do kill -0 \$server || exit 1; sleep 0.1; done
echo ready >&3
cat > /dev/null
SCRIPT
}
