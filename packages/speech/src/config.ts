/** The section `[speech]`. */
import { headerSecret, httpUrl, operatorCommand, whole } from '@sluice/sdk'
import * as v from 'valibot'

/** The public service, which requires a key. A service that the operator runs may not need one. */
export const PUBLIC_API_URL = 'https://api.openai.com/v1'
/** The placeholders in `command` for the name of the file with the text, and of the file that the program writes. */
export const TEXT = '{text}'
export const FILE = '{file}'

const text = v.pipe(v.string(), v.minLength(1))

const keys = v.object({
  enabled: v.optional(v.pipe(v.boolean(), v.description('Whether texts can be spoken')), false),
  api_url: v.optional(
    v.pipe(httpUrl(), v.description('Base URL of an OpenAI-compatible service; texts are sent to <api_url>/audio/speech')),
    PUBLIC_API_URL,
  ),
  api_key: v.optional(
    v.pipe(headerSecret({ env: ['SVC_SPEECH_API_KEY'], envWins: true }), v.description('Key of the service; absent: none is sent')),
  ),
  model: v.optional(v.pipe(text, v.description('Model of the service')), 'gpt-4o-mini-tts'),
  voice: v.optional(v.pipe(text, v.description('Voice of the service')), 'alloy'),
  command: v.optional(operatorCommand({ [TEXT]: 'the name of the file with the text', [FILE]: 'the name of the file to write' })),
  command_format: v.optional(
    v.pipe(v.picklist(['wav', 'ogg']), v.description('The format that the command writes: wav, or ogg with Opus')),
    'wav',
  ),
  timeout_secs: v.optional(v.pipe(whole(1, 600), v.description('Longest time for one text')), 30),
  max_chars: v.optional(v.pipe(whole(1, 100_000), v.description('Longest text; a longer one is refused')), 4000),
})

/** Returns the key of the service, or undefined if no text is sent to it. */
const keyOf = ({ enabled, command, api_key }: v.InferOutput<typeof keys>): string | undefined =>
  enabled && !command ? (api_key?.reveal().trim() ?? '') : undefined

export const speechSection = {
  path: 'speech',
  schema: v.pipe(
    keys,
    v.check(
      (config) => keyOf(config) !== '' || config.api_url !== PUBLIC_API_URL,
      'it is enabled without api_key (or SVC_SPEECH_API_KEY), without command, and without an api_url of your own',
    ),
  ),
} as const

export type SpeechConfig = v.InferOutput<typeof speechSection.schema>
