/** `[transcription]`. */
import { isAbsolute } from 'node:path'
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'

/** The public service; unlike one of the operator's own, it demands a key. */
export const PUBLIC_API_URL = 'https://api.openai.com/v1'
/** Stands for the recording in `command`. */
export const FILE = '{file}'

const text = v.pipe(v.string(), v.minLength(1))

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether recordings that come in become text')), false),
  api_url: v.optional(
    v.pipe(
      v.string(),
      v.url(),
      v.regex(/^https?:\/\/[^?#@]+$/i, 'Not an http or https URL without credentials, query and fragment'),
      v.description('An OpenAI-compatible service; recordings go to <api_url>/audio/transcriptions'),
    ),
    PUBLIC_API_URL,
  ),
  api_key: v.optional(
    v.pipe(
      headerSecret({ env: ['SVC_TRANSCRIPTION_API_KEY'], envWins: true }),
      v.description('Of the service; absent: none is sent, as servers of your own may want it'),
    ),
  ),
  model: v.optional(v.pipe(text, v.description('The model of the service')), 'whisper-1'),
  language: v.optional(v.pipe(text, v.description('What is spoken, such as en; absent: the service finds out'))),
  command: v.optional(
    v.pipe(
      v.array(text),
      v.minLength(1),
      v.check(([program = '']) => !program.includes('/') || isAbsolute(program), 'The program is a name, or an absolute path'),
      v.check(([, ...args]) => args.some((arg) => arg.includes(FILE)), `No argument names the recording, ${FILE}`),
      v.description(`A program and its arguments, run in the sandbox instead of the service; ${FILE} is the recording`),
    ),
  ),
  timeout_secs: v.optional(v.pipe(whole(1, 3600), v.description('How long one recording may take')), 120),
  max_mb: v.optional(v.pipe(whole(1, 100), v.description('A larger recording is refused; in MiB')), 25),
})

/** Of the service, if recordings go there. */
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
