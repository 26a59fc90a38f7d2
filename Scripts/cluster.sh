# Sourced by other scripts: a PostgreSQL cluster of their own, reached by a Unix socket only.
#
# make_cluster log      makes one, runs it as process `postgres`, and sets `cluster` to the folder of its data and socket,
#                       `database` to what libpq calls its address, and `postgres_bin` to where the programs are
# remove_cluster        stops it and deletes the folder
#
# PostgreSQL does not run as root; there it runs as `nobody`.

cluster="" database="" postgres="" postgres_bin=""

make_cluster() {
  local log=$1 as=()
  postgres_bin=$(find /usr/lib/postgresql -maxdepth 2 -name bin 2>/dev/null | sort --version-sort | tail -n 1)
  [[ -x $postgres_bin/initdb && -x $postgres_bin/postgres ]] || {
    echo "PostgreSQL is not in /usr/lib/postgresql" >&2
    return 1
  }
  cluster=$(mktemp -d "${TMPDIR:-/tmp}/kizuna-cluster.XXXXXX")
  if ((EUID == 0)); then
    as=(setpriv --reuid=nobody --regid=nogroup --clear-groups)
    chown nobody:nogroup "$cluster"
  fi
  # Nobody else can reach the socket, so that no password is needed.
  (cd / && "${as[@]}" "$postgres_bin/initdb" --pgdata="$cluster/data" --username=postgres --auth=trust \
    --encoding=UTF8 --locale=C.UTF-8) >"$log" 2>&1 || return 1
  (cd / && exec "${as[@]}" "$postgres_bin/postgres" -D "$cluster/data" -k "$cluster" -c listen_addresses=) >>"$log" 2>&1 &
  postgres=$!
  database="postgresql://postgres@/postgres?host=$cluster"
  local deadline=$((SECONDS + 30))
  until "$postgres_bin/pg_isready" --quiet --dbname="$database"; do
    kill -0 "$postgres" 2>/dev/null && ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# psql_do SQL…   runs SQL and prints the rows, columns parted by |
psql_do() {
  local text options=()
  for text in "$@"; do options+=(--command="$text"); done
  PGOPTIONS="-c client_min_messages=warning" "$postgres_bin/psql" --no-psqlrc --quiet --no-align --tuples-only \
    --set=ON_ERROR_STOP=1 --dbname="$database" "${options[@]}"
}

remove_cluster() {
  if [[ -n $postgres ]]; then
    kill -INT "$postgres" 2>/dev/null || true
    wait "$postgres" 2>/dev/null || true
    postgres=""
  fi
  if [[ -n $cluster ]]; then rm -rf "$cluster"; fi
  cluster=""
}
