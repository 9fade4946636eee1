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

{{- define "locks.secret" -}}
{{- required "auth.secret: name the Secret with the ACL file and the password (README.md: Before the first install)" .Values.auth.secret -}}
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
