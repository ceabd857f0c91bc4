#!/bin/bash
# Fills a database of each dialect with the last plinth of Kubernetes 1.33, and writes here what they hold (NAME.sql.gz)
# and what that plinth answers (NAME.answers.gz). In a checkout of plinth, with kubectl, sqlite3, pg_dump and mariadb-dump:
#
#	git worktree add /tmp/plinth-1.33 67afec1 && (cd /tmp/plinth-1.33 && go build ./cmd/plinth)
#	go run ./dialects/logtest/withservers -memory -- server/testdata/v1.33/fill.sh /tmp/plinth-1.33/plinth
set -euo pipefail
plinth=$1
cd "$(dirname "$0")"
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server"; wait; rm -r "$scratch"' EXIT

# in_database PRODUCT STATEMENT runs a statement on the server of Postgres or MariaDB.
in_database() {
	case $1 in
	postgres) psql -qd "$PLINTH_TEST_POSTGRES" -c "$2" ;;
	mariadb) mariadb_of mariadb -e "$2" ;;
	esac
}

# mariadb_of COMMAND ARGUMENT... runs a client of MariaDB with the address and user of PLINTH_TEST_MYSQL.
mariadb_of() {
	local client=$1 url user host port
	shift
	url=${PLINTH_TEST_MYSQL#*://} url=${url%%/*} user=${url%@*} host=${url##*@} port=${host##*:} host=${host%:*}
	local password=()
	case $user in *:*) password=("--password=${user#*:}") ;; esac
	"$client" --host="$host" --port="$port" --user="${user%%:*}" "${password[@]}" "$@"
}

# with_name URL replaces the path of a URL by the name of the database.
with_name() { sed -E 's,^([a-z]+://[^/?]*)/?[^?]*,\1/plinth_1_33,' <<<"$1"; }

dump() {
	case $1 in
	sqlite) sqlite3 "$scratch/sqlite.db" .dump | sed "s|$scratch|/var/lib/plinth|" ;; # which has its own path
	# What psql alone understands begins with a backslash.
	postgres) pg_dump --no-owner --no-privileges --no-comments --rows-per-insert=100 -d "$(with_name "$PLINTH_TEST_POSTGRES")" | grep -v '^\\' ;;
	# Who made a view is not there where the dump is loaded.
	mariadb) mariadb_of mariadb-dump --hex-blob --skip-comments --skip-dump-date plinth_1_33 | sed 's/ DEFINER=[^ ]*//' ;;
	esac
}

fill() {
	kubectl create -f definitions.yaml
	kubectl wait --for=condition=Established --timeout=1m -f definitions.yaml
	kubectl create --validate=false -f objects.yaml
	kubectl label -f definitions.yaml -f objects.yaml changed=once
	# Versions that are older than --history go from the table log to the table past.
	until kubectl get --raw /metrics | grep -q '^plinth_compacted_revision [1-9]'; do sleep 0.1; done
	kubectl -n rich annotate --all configmaps,pods,deployments,resourceclaims,widgets changed=twice
	kubectl apply --server-side --field-manager=applier -f - <<-END
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "history", "namespace": "rich"}, "data": {"shape": "round"}}
		---
		{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "large", "namespace": "rich"}, "spec": {"ports": [{"name": "c", "port": 3}]}}
	END
	kubectl -n rich patch configmap history -p '{"data": {"size": null}}'
	kubectl -n rich delete --wait=false configmap leaves returns held
	kubectl -n rich create configmap returns --from-literal=life=second
	kubectl -n rich label configmap returns changed=once
	# A creation leaves out what objects.yaml has as status.
	kubectl create --dry-run=client --validate=false -o json -f objects.yaml | jq -c 'select(.status)' | while read -r object; do
		kubectl patch --subresource=status --type=merge -f - -p "$(jq -c '{status}' <<<"$object")" <<<"$object"
	done
}

# answers prints, a line each, all paths whose answers are compared, and the answers.
answers() {
	local group_version path resource
	for group_version in $(kubectl api-versions); do
		path=/apis/$group_version
		[ "$group_version" != v1 ] || path=/api/v1
		[ "$group_version" != history.plinth.io/v1 ] || continue
		for resource in $(kubectl get --raw "$path" | jq -r '.resources[] | select(.verbs | index("list")) | .name | select(. != "componentstatuses")'); do
			echo "$path/$resource $(kubectl get --raw "$path/$resource")"
		done
	done
	for resource in changes versions; do
		path="/apis/history.plinth.io/v1/namespaces/rich/$resource"
		echo "$path $(kubectl get --raw "$path")"
	done
}

for name in sqlite postgres mariadb; do
	case $name in
	sqlite) dsn=sqlite://$scratch/sqlite.db ;;
	postgres) dsn=$(with_name "$PLINTH_TEST_POSTGRES") ;;
	mariadb) dsn=$(with_name "$PLINTH_TEST_MYSQL") ;;
	esac
	in_database $name "CREATE DATABASE plinth_1_33"
	data=$scratch/$name
	: >"$data.log"
	"$plinth" serve --listen 127.0.0.1:0 --data-dir "$data" --dsn "$dsn" --controllers none --history 10s --keep '*=100' --event-ttl 0 \
		--runtime-config api/all=true --feature-gates ClusterTrustBundle=true,StorageVersionMigrator=true >"$data.log" 2>&1 &
	server=$!
	until grep -q '^export KUBECONFIG' "$data.log"; do kill -0 "$server"; sleep 0.1; done
	export KUBECONFIG=$data/kubeconfig
	fill >"$data.filled"
	answers | gzip -9n >"$name.answers.gz"
	kill "$server"
	wait "$server" || true
	server=
	dump $name | gzip -9n >"$name.sql.gz"
	in_database $name "DROP DATABASE plinth_1_33"
	echo "$name: $(wc -l <"$data.filled") changes"
done
