/** The keys of `[observability]` that are about OTLP. */
import * as v from 'valibot'

const NAME_CHARS_MAX = 255

/** Credentials in the file would be readable to all: they go into OTEL_EXPORTER_OTLP_HEADERS. */
const isPlainHttp = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}

export const otelSection = {
  path: 'observability',
  schema: v.object({
    otel_endpoint: v.optional(
      v.pipe(
        v.string(),
        v.check(isPlainHttp, 'an http or https URL without a user name, such as http://localhost:4318'),
        v.description('Where the collector takes OTLP over HTTP; spans go to /v1/traces below it'),
      ),
      'http://localhost:4318',
    ),
    otel_service_name: v.optional(
      v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX), v.description('service.name of every span')),
      'sluice',
    ),
  }),
}
