{{- define "postroom.labels" -}}
app.kubernetes.io/name: postroom
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* What would start and then lose mail, or not start, is refused here. */}}
{{- define "postroom.check" -}}
{{- if not .Values.mailDomain }}{{ fail "mailDomain is required: the domain of the inboxes" }}{{ end }}
{{- if gt (int .Values.replicas) 1 }}
{{- if not .Values.database }}{{ fail "replicas > 1 needs database: true and POSTROOM_DATABASE in existingSecret" }}{{ end }}
{{- if not .Values.blobs }}{{ fail "replicas > 1 needs blobs: nodes share large mail in S3" }}{{ end }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.trustedProxies) (not .Values.settings.POSTROOM_TRUSTED_PROXIES) }}{{ fail "ingress.enabled needs ingress.trustedProxies: the addresses of the ingress controller" }}{{ end }}
{{- if and .Values.database (not .Values.existingSecret) }}{{ fail "database: true needs existingSecret with POSTROOM_DATABASE and POSTROOM_SECRET" }}{{ end }}
{{- end }}
