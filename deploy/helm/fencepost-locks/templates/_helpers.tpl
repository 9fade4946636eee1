{{- define "locks.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "locks.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "locks.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "locks.selectorLabels" -}}
app.kubernetes.io/name: {{ include "locks.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "locks.labels" -}}
{{ include "locks.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* a to g, as the metrics call them. */}}
{{- define "locks.letters" -}}
{{- slice (list "a" "b" "c" "d" "e" "f" "g") 0 (int .Values.nodes) | toJson -}}
{{- end -}}

{{/* The nodes as pipeline files name them. */}}
{{- define "locks.addresses" -}}
{{- $all := list -}}
{{- range include "locks.letters" . | fromJsonArray -}}
{{- $all = append $all (printf "%s-%s.%s.svc:%d" (include "locks.fullname" $) . $.Release.Namespace (int $.Values.port)) -}}
{{- end -}}
{{- $all | toJson -}}
{{- end -}}

{{- define "locks.image" -}}
{{- if .digest -}}{{ printf "%s@%s" .repository .digest }}{{- else -}}{{ printf "%s:%s" .repository .tag }}{{- end -}}
{{- end -}}

{{/* MiB, rounded down, of a size of Redis or of Kubernetes; empty where it is written otherwise. */}}
{{- define "locks.mebibytes" -}}
{{- $factors := dict "mb" 1 "Mi" 1 "gb" 1024 "Gi" 1024 "Ti" 1048576 "M" 0.953 "G" 953.6 -}}
{{- if regexMatch "^[0-9]+(mb|gb|Mi|Gi|Ti|M|G)$" . -}}
{{- mulf (regexFind "^[0-9]+" . | float64) (get $factors (regexFind "[a-zA-Z]+$" .)) | floor | int64 -}}
{{- end -}}
{{- end -}}

{{/* Refuses what the schema cannot see. */}}
{{- define "locks.check" -}}
{{- $own := include "locks.mebibytes" .Values.maxmemory | int64 -}}
{{- $limit := include "locks.mebibytes" (dig "limits" "memory" "" .Values.resources | toString) -}}
{{- if and $limit (lt (mul 2 (int64 $limit)) (mul 3 $own)) -}}
{{- fail (printf "resources.limits.memory: %s is below maxmemory: %s and half as much again; the rewrite of the append-only file would end the node: raise it" .Values.resources.limits.memory .Values.maxmemory) -}}
{{- end -}}
{{- if lt (include "locks.mebibytes" .Values.persistence.size | int64) (mul 2 $own) -}}
{{- fail (printf "persistence.size: %s is below twice maxmemory: %s; the append-only file needs that while it is rewritten" .Values.persistence.size .Values.maxmemory) -}}
{{- end -}}
{{- range $name := keys .Values.podLabels -}}
{{- if regexMatch "^(app\\.kubernetes\\.io/(name|instance|component)|fencepost/node)$" $name -}}
{{- fail (printf "podLabels: %s is the chart's own: the Services and the policies select by it" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Milliseconds of a duration that the schema has let through. */}}
{{- define "locks.milliseconds" -}}
{{- mul (regexFind "^[0-9]+" . | int64) (get (dict "ms" 1 "s" 1000 "m" 60000) (regexFind "[a-z]+$" .)) -}}
{{- end -}}

{{/* Seconds from a node's start to ready: the quarantine, init.maxTtl and 2 x maxSkew, and 40 more in which it
     loads its file and is seen by a client, as that is when the quarantine begins. */}}
{{- define "locks.readyAfter" -}}
{{- $ms := add (include "locks.milliseconds" .Values.init.maxTtl) (mul 2 (include "locks.milliseconds" .Values.maxSkew | int64)) -}}
{{- add (div (add $ms 999) 1000) 40 -}}
{{- end -}}

{{/* The Secret with the ACL file and the password: that of auth.secret, or the chart's own. */}}
{{- define "locks.secret" -}}
{{- default (include "locks.fullname" .) .Values.auth.secret -}}
{{- end -}}

{{/* A PING that the event loop answered; one that still loads its file answers LOADING. */}}
{{- define "locks.ping" -}}
exec:
  command:
    - sh
    - -c
    - test "$(redis-cli -p {{ .Values.port }}{{ if .Values.tls.secret }} --tls --cacert /etc/redis/tls/{{ .Values.tls.caKey }}{{ end }} --user probe --pass probe --no-auth-warning ping)" = PONG
{{- end -}}

{{- define "locks.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}
