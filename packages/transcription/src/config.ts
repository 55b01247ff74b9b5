/** The section `[transcription]`. */
import { headerSecret, operatorCommand, whole } from '@sluice/sdk'
import * as v from 'valibot'

/** The public service, which requires a key. A service that the operator runs may not need one. */
export const PUBLIC_API_URL = 'https://api.openai.com/v1'
/** The placeholder for the name of the recording in `command`. */
export const FILE = '{file}'

const text = v.pipe(v.string(), v.minLength(1))

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether incoming recordings are transcribed')), false),
  api_url: v.optional(
    v.pipe(
      v.string(),
      v.url(),
      v.regex(/^https?:\/\/[^?#@]+$/i, 'Must be an http or https URL without credentials, query and fragment'),
      v.description('Base URL of an OpenAI-compatible service; recordings are sent to <api_url>/audio/transcriptions'),
    ),
    PUBLIC_API_URL,
  ),
  api_key: v.optional(
    v.pipe(headerSecret({ env: ['SVC_TRANSCRIPTION_API_KEY'], envWins: true }), v.description('Key of the service; absent: none is sent')),
  ),
  model: v.optional(v.pipe(text, v.description('Model of the service')), 'whisper-1'),
  language: v.optional(v.pipe(text, v.description('Language of the recordings, such as en; absent: the service detects it'))),
  command: v.optional(operatorCommand({ [FILE]: 'the name of the recording' })),
  timeout_secs: v.optional(v.pipe(whole(1, 3600), v.description('Longest time for one recording')), 120),
  max_mb: v.optional(v.pipe(whole(1, 100), v.description('Largest recording in MiB; a larger one is refused')), 25),
})

/** Returns the key of the service, or undefined if no recording is sent to it. */
const keyOf = ({ enabled, command, api_key }: v.InferOutput<typeof keys>): string | undefined =>
  enabled && !command ? (api_key?.reveal().trim() ?? '') : undefined

export const transcriptionSection = {
  path: 'transcription',
  schema: v.pipe(
    keys,
    v.check(
      (config) => keyOf(config) !== '' || config.api_url !== PUBLIC_API_URL,
      'it is enabled without api_key (or SVC_TRANSCRIPTION_API_KEY), without command, and without an api_url of your own',
    ),
  ),
} as const

export type TranscriptionConfig = v.InferOutput<typeof transcriptionSection.schema>
