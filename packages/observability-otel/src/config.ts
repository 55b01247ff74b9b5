/** The OTLP keys of the configuration section `[observability]`. */
import { withoutTrailing } from '@sluice/kit'
import * as v from 'valibot'

const NAME_CHARS_MAX = 255

/** Refuses credentials in the URL, which every reader of the file would see. They belong into OTEL_EXPORTER_OTLP_HEADERS. */
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
        v.description('The address of the collector for OTLP over HTTP; spans go to /v1/traces below it'),
      ),
      'http://localhost:4318',
    ),
    otel_service_name: v.optional(
      v.pipe(v.string(), v.minLength(1), v.maxLength(NAME_CHARS_MAX), v.description('service.name of every span')),
      'sluice',
    ),
  }),
}

/** Returns the URL to post spans to: the endpoint with `/v1/traces`, unless its path ends with that already. */
export function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint)
  const path = withoutTrailing(url.pathname, '/')
  url.pathname = path.endsWith('/v1/traces') ? path : `${path}/v1/traces`
  return url.href
}
