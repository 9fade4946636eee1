{{- define "fencepost.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fencepost.fullname" -}}
{{- $most := ternary 52 63 (eq (include "fencepost.kind" .) "StatefulSet") -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc $most | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "fencepost.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc $most | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc $most | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fencepost.selectorLabels" -}}
app.kubernetes.io/name: {{ include "fencepost.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fencepost.labels" -}}
{{ include "fencepost.selectorLabels" . }}
app.kubernetes.io/component: worker
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "fencepost.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "fencepost.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "fencepost.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* off, keda or hpa; an off without quotes is false to YAML. */}}
{{- define "fencepost.scaling" -}}
{{- $mode := toString .Values.autoscaling.mode -}}
{{- ternary "off" $mode (eq $mode "false") -}}
{{- end -}}

{{/* A list of a pipeline file, which may be one text with commas, as such a text; without SSL:// and the like. */}}
{{- define "fencepost.commas" -}}
{{- regexReplaceAll "[A-Z_]+://|\\s" (join "," .) "" -}}
{{- end -}}

{{/* StatefulSet where a pipeline has kafka.static_members: its pods keep their names, and so their partitions. */}}
{{- define "fencepost.kind" -}}
{{- $kind := "Deployment" -}}
{{- range $file, $text := .Values.pipelines -}}
{{- if eq (toString (dig "kafka" "static_members" false (fromYaml $text))) "true" -}}{{- $kind = "StatefulSet" -}}{{- end -}}
{{- end -}}
{{- $kind -}}
{{- end -}}

{{/* Of the workers' port. */}}
{{- define "fencepost.scheme" -}}
{{- $scheme := "http" -}}
{{- range $file, $text := .Values.pipelines -}}
{{- if dig "observe" "tls" false (fromYaml $text) -}}{{- $scheme = "https" -}}{{- end -}}
{{- end -}}
{{- $scheme -}}
{{- end -}}

{{/* Seconds, rounded up, of a duration of a pipeline file; empty where it is none, as with ${VAR}. */}}
{{- define "fencepost.seconds" -}}
{{- $factors := dict "s" 1 "m" 60 "h" 3600 "d" 86400 -}}
{{- if regexMatch "^[0-9]+ms$" . -}}
{{- divf (trimSuffix "ms" . | int64) 1000 | ceil | int64 -}}
{{- else if regexMatch "^[0-9]+[smhd]$" . -}}
{{- $unit := regexFind "[smhd]$" . -}}
{{- mul (trimSuffix $unit . | int64) (get $factors $unit) -}}
{{- end -}}
{{- end -}}

{{/* The dashboard as it is in the file, where panels link to its own row of runbooks; with runbookUrl, they link there. */}}
{{- define "fencepost.dashboard" -}}
{{- $text := required "files/fencepost.json is missing in the chart" (.Files.Get "files/fencepost.json") -}}
{{- $url := .Values.runbookUrl -}}
{{- if not $url -}}
{{- $text -}}
{{- else -}}
{{- $dashboard := fromJson $text -}}
{{- $_ := set $dashboard "links" (list (dict "title" "Runbooks" "type" "link" "icon" "doc" "url" $url "targetBlank" true)) -}}
{{- range $panel := $dashboard.panels -}}
{{- with regexFind "#fencepost[a-z]+$" (default "" $panel.description) -}}
{{- $_ := set $panel "links" (list (dict "title" "Runbook" "type" "link" "icon" "doc" "url" (print $url .) "targetBlank" true)) -}}
{{- end -}}
{{- end -}}
{{- toPrettyJson $dashboard -}}
{{- end -}}
{{- end -}}

{{/* Refuses what the schema cannot see. */}}
{{- define "fencepost.check" -}}
{{- if not .Values.pipelines -}}
{{- fail "pipelines: there is none; give at least one file: --set-file pipelines.orders=orders.yaml" -}}
{{- end -}}
{{- $limit := int .Values.shutdownTimeoutSeconds -}}
{{- $names := dict -}}
{{- range $file, $text := .Values.pipelines -}}
{{- $pipeline := fromYaml $text -}}
{{- with $pipeline.Error -}}
{{- fail (printf "pipelines.%s is no YAML: %s; check it with: fencepost lint" $file .) -}}
{{- end -}}
{{- if not $pipeline.name -}}
{{- fail (printf "pipelines.%s has no name:; is it a pipeline file? check it with: fencepost lint" $file) -}}
{{- end -}}
{{- with get $names $pipeline.name -}}
{{- fail (printf "pipelines.%s and pipelines.%s have the same name: %s; the name is the identity of a pipeline" . $file $pipeline.name) -}}
{{- end -}}
{{- $_ := set $names $pipeline.name $file -}}
{{- include "fencepost.checkSecrets" (list $file $pipeline) -}}
{{- $open := dig "observe" "auth" "open" list $pipeline -}}
{{- $shut := or (dig "observe" "auth" false $pipeline) (dig "observe" "tls" "client_ca" false $pipeline) -}}
{{- if and $shut (not (and (has "live" $open) (has "ready" $open))) -}}
{{- fail (printf "pipelines.%s: observe.auth or observe.tls.client_ca shuts out the kubelet, whose probes have no credentials: write observe.auth.open: [live, ready]" $file) -}}
{{- end -}}
{{- range $name, $monitor := dict "serviceMonitor" $.Values.serviceMonitor "podMonitor" $.Values.podMonitor -}}
{{- $endpoint := default dict $monitor.endpoint -}}
{{- if and $monitor.enabled (dig "observe" "tls" false $pipeline) (not $endpoint.tlsConfig) -}}
{{- fail (printf "pipelines.%s: observe.tls, and Prometheus does not know its CA: write %s.endpoint.tlsConfig" $file $name) -}}
{{- end -}}
{{- $asked := and (not (has "metrics" $open)) (or (dig "observe" "auth" "bearer" false $pipeline) (dig "observe" "auth" "basic" false $pipeline)) -}}
{{- if and $monitor.enabled $asked (not (or $endpoint.authorization $endpoint.basicAuth)) -}}
{{- fail (printf "pipelines.%s: observe.auth, and Prometheus has no credentials: write %s.endpoint.authorization or basicAuth" $file $name) -}}
{{- end -}}
{{- end -}}
{{- $seconds := include "fencepost.seconds" (toString (default "25s" $pipeline.shutdown_timeout)) -}}
{{- if and $seconds (gt (int $seconds) $limit) -}}
{{- fail (printf "pipelines.%s: shutdown_timeout %s is above shutdownTimeoutSeconds: %d; the pod would be killed before the worker has drained: raise the value" $file $pipeline.shutdown_timeout $limit) -}}
{{- end -}}
{{- end -}}
{{- include "fencepost.checkPod" . -}}
{{- if and .Values.serviceMonitor.enabled .Values.podMonitor.enabled -}}
{{- fail "serviceMonitor, podMonitor: Prometheus would count each worker twice: enable one of them" -}}
{{- end -}}
{{- $fixed := eq (include "fencepost.scaling" .) "off" -}}
{{- if and $fixed (eq (int .Values.rollout.maxUnavailable) 0) (eq (int .Values.rollout.maxSurge) 0) -}}
{{- fail "rollout: maxSurge and maxUnavailable cannot both be 0: no pod could ever be replaced" -}}
{{- end -}}
{{- if and (not $fixed) (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling: minReplicas is above maxReplicas" -}}
{{- end -}}
{{- $fewest := int .Values.replicas -}}
{{- if not $fixed -}}{{- $fewest = int .Values.autoscaling.minReplicas -}}{{- end -}}
{{- if and (gt $fewest 1) (ge (int .Values.rollout.maxUnavailable) $fewest) -}}
{{- fail (printf "rollout.maxUnavailable: %d would let a rollout take all %d workers at once" (int .Values.rollout.maxUnavailable) $fewest) -}}
{{- end -}}
{{- $budget := .Values.podDisruptionBudget -}}
{{- if and $budget.enabled (gt $fewest 1) (ge (int $budget.maxUnavailable) $fewest) -}}
{{- fail (printf "podDisruptionBudget.maxUnavailable: %d would let a drain take all %d workers at once" (int $budget.maxUnavailable) $fewest) -}}
{{- end -}}
{{- end -}}

{{/* What would be written into the ConfigMap, where everybody can read it. Of (list FILE PIPELINE). A map is
     {file: PATH}. A default within ${VARIABLE:-default} is text of the file like any other; $${ is no variable. */}}
{{- define "fencepost.checkSecrets" -}}
{{- $file := index . 0 -}}
{{- $pipeline := omit (index . 1) "tests" -}}
{{- $known := dict "kafka.sasl.password" (dig "kafka" "sasl" "password" "" $pipeline) "kafka.sasl.oauth.client_secret" (dig "kafka" "sasl" "oauth" "client_secret" "" $pipeline) "output.kafka.sasl.password" (dig "output" "kafka" "sasl" "password" "" $pipeline) "output.kafka.sasl.oauth.client_secret" (dig "output" "kafka" "sasl" "oauth" "client_secret" "" $pipeline) "dead_letter.sasl.password" (dig "dead_letter" "sasl" "password" "" $pipeline) "dead_letter.sasl.oauth.client_secret" (dig "dead_letter" "sasl" "oauth" "client_secret" "" $pipeline) "kafka.decode.registry.password" (dig "kafka" "decode" "registry" "password" "" $pipeline) "kafka.decode.registry.bearer" (dig "kafka" "decode" "registry" "bearer" "" $pipeline) "kafka.decode.registry.oauth2.client_secret" (dig "kafka" "decode" "registry" "oauth2" "client_secret" "" $pipeline) "output.kafka.encode.registry.bearer" (dig "output" "kafka" "encode" "registry" "bearer" "" $pipeline) "output.kafka.encode.registry.oauth2.client_secret" (dig "output" "kafka" "encode" "registry" "oauth2" "client_secret" "" $pipeline) "output.postgres.password" (dig "output" "postgres" "password" "" $pipeline) "output.mysql.password" (dig "output" "mysql" "password" "" $pipeline) "output.kafka.encode.registry.password" (dig "output" "kafka" "encode" "registry" "password" "" $pipeline) "lock.redis.password" (dig "lock" "redis" "password" "" $pipeline) "handler.http.auth.basic.password" (dig "handler" "http" "auth" "basic" "password" "" $pipeline) "observe.auth.basic.password" (dig "observe" "auth" "basic" "password" "" $pipeline) "observe.auth.bearer" (dig "observe" "auth" "bearer" "" $pipeline) "observe.control_token" (dig "observe" "control_token" "" $pipeline) "handler.http.auth.bearer" (dig "handler" "http" "auth" "bearer" "" $pipeline) "handler.http.auth.oauth2.client_secret" (dig "handler" "http" "auth" "oauth2" "client_secret" "" $pipeline) -}}
{{- range $key, $value := default dict (dig "kafka" "librdkafka" dict $pipeline) -}}
{{- if regexMatch "(?i)(password|secret|passphrase|[.]key[.]pem|jaas[.]config|oauthbearer[.]config)$" $key -}}
{{- $_ := set $known (print "kafka.librdkafka." $key) $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := default dict (dig "handler" "http" "headers" dict $pipeline) -}}
{{- if regexMatch "(?i)(auth|api-?key|access-?key|token|secret|password|credential|cookie|session|signature)" $key -}}
{{- $_ := set $known (print "handler.http.headers." $key) $value -}}
{{- end -}}
{{- end -}}
{{- range $key, $value := $known -}}
{{- $text := include "fencepost.written" $value -}}
{{- if and $text (not (kindIs "map" $value)) (not (contains "${" $text)) -}}
{{- fail (printf "pipelines.%s: %s is written out and would stand in a ConfigMap: write ${VARIABLE} there, without a default, and name its Secret in secrets.env" $file $key) -}}
{{- end -}}
{{- end -}}
{{- $dsn := include "fencepost.written" (dig "output" "postgres" "dsn" "" $pipeline) -}}
{{- if or (regexMatch "://[^/@:]*:[^$/@][^/@]*@" $dsn) (regexMatch "password *= *[^$ ]" $dsn) -}}
{{- fail (printf "pipelines.%s: output.postgres.dsn holds a password and would stand in a ConfigMap: write dsn: ${VARIABLE} and name its Secret in secrets.env" $file) -}}
{{- end -}}
{{- range $line := include "fencepost.written" (toYaml $pipeline) | splitList "\n" -}}
{{- if regexMatch "://[^/@:\\s]*:[^$/@\\s][^/@\\s]*@" $line -}}
{{- fail (printf "pipelines.%s: a URL at %s holds a password and would stand in a ConfigMap: write ${VARIABLE} in its place and name its Secret in secrets.env" $file (regexFind "[a-z]+://" $line)) -}}
{{- end -}}
{{- if regexMatch "(?i)://[^\\s]*[?&](api_?key|access_?key|(access_?)?token|password|secret|sig(nature)?)=[^$&\\s\"']" $line -}}
{{- fail (printf "pipelines.%s: the query of a URL at %s holds a secret and would stand in a ConfigMap: write ${VARIABLE} in its place and name its Secret in secrets.env" $file (regexFind "[a-z]+://" $line)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* What a value holds as text, with the defaults of its variables in their places. */}}
{{- define "fencepost.written" -}}
{{- regexReplaceAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*:-([^}]*)\\}" (toString . | replace "$${" "literal {") "${1}" -}}
{{- end -}}

{{/* What the API server or the kubelet would refuse, or worse, take in part. */}}
{{- define "fencepost.checkPod" -}}
{{- range $name := keys .Values.podLabels -}}
{{- if regexMatch "^app\\.kubernetes\\.io/(name|instance|component)$" $name -}}
{{- fail (printf "podLabels: %s is the chart's own: the Service and the policies select by it" $name) -}}
{{- end -}}
{{- end -}}
{{- $variables := list "FENCEPOST_WORKER" "FENCEPOST_HTTP" -}}
{{- $variables = concat $variables (keys .Values.env) -}}
{{- range concat .Values.secrets.env .Values.extraEnv -}}
{{- if has .name $variables -}}
{{- fail (printf "%s is there twice among the chart's own variables, env, secrets.env and extraEnv" .name) -}}
{{- end -}}
{{- $variables = append $variables .name -}}
{{- end -}}
{{- $paths := list -}}
{{- range .Values.secrets.files -}}{{- $paths = append $paths .path -}}{{- end -}}
{{- range .Values.extraVolumeMounts -}}{{- $paths = append $paths (default "" .mountPath) -}}{{- end -}}
{{- range $path := $paths -}}
{{- if regexMatch "^/etc/fencepost(/|$)" $path -}}
{{- fail (printf "%s: the pipelines are mounted at /etc/fencepost, and nothing can be mounted below a ConfigMap: take /run/secrets/NAME" $path) -}}
{{- end -}}
{{- end -}}
{{- if ne (len $paths) (len (uniq $paths)) -}}
{{- fail "secrets.files, extraVolumeMounts: two mounts at one path" -}}
{{- end -}}
{{- end -}}
