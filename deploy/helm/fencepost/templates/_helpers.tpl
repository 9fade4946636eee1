{{- define "fencepost.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "fencepost.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "fencepost.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
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
{{- $seconds := include "fencepost.seconds" (toString (default "25s" $pipeline.shutdown_timeout)) -}}
{{- if and $seconds (gt (int $seconds) $limit) -}}
{{- fail (printf "pipelines.%s: shutdown_timeout %s is above shutdownTimeoutSeconds: %d; the pod would be killed before the worker has drained: raise the value" $file $pipeline.shutdown_timeout $limit) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.autoscaling.mode "off") (eq (int .Values.rollout.maxUnavailable) 0) (eq (int .Values.rollout.maxSurge) 0) -}}
{{- fail "rollout: maxSurge and maxUnavailable cannot both be 0: no pod could ever be replaced" -}}
{{- end -}}
{{- if and (ne .Values.autoscaling.mode "off") (gt (int .Values.autoscaling.minReplicas) (int .Values.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling: minReplicas is above maxReplicas" -}}
{{- end -}}
{{- $fewest := int .Values.replicas -}}
{{- if ne .Values.autoscaling.mode "off" -}}{{- $fewest = int .Values.autoscaling.minReplicas -}}{{- end -}}
{{- if and (gt $fewest 1) (ge (int .Values.rollout.maxUnavailable) $fewest) -}}
{{- fail (printf "rollout.maxUnavailable: %d would let a rollout take all %d workers at once" (int .Values.rollout.maxUnavailable) $fewest) -}}
{{- end -}}
{{- end -}}
