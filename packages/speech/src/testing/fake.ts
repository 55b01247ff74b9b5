/**
 * An OpenAI-compatible speech service on loopback: it checks requests as the API reference of `POST /v1/audio/speech` describes
 * (platform.openai.com/docs/api-reference/audio/createSpeech), and speaks a tone for each character.
 */
import { equalTexts } from '@sluice/sdk'
import { type FakeProvider, type ProviderReply, startFakeProvider } from '@sluice/testkit/fake-provider'
import { toneWav } from './tone.ts'

export interface SpeechFakeOptions {
  /** `null`: no key is required. */
  readonly apiKey?: string | null
  readonly port?: number
}

export interface SpeechFake extends FakeProvider {
  readonly apiKey: string | null
  /** The value for `api_url`. */
  readonly apiUrl: string
  /** The texts that were spoken, in order. */
  readonly spoken: readonly string[]
}

const INPUT_CHARS_MAX = 4096
const FORMATS = ['mp3', 'opus', 'aac', 'flac', 'wav', 'pcm']
const MS_PER_CHAR = 20

/** Starts the fake; call `close` to end it. */
export async function startSpeechFake({ apiKey = 'speech-fake-key', port = 0 }: SpeechFakeOptions = {}): Promise<SpeechFake> {
  const spoken: string[] = []
  const provider = await startFakeProvider(
    ({ method, path, headers, json }): ProviderReply => {
      if (method !== 'POST' || path !== '/v1/audio/speech') return refusal(404, `Invalid URL (${method} ${path})`)
      if (apiKey !== null && !equalTexts(headers.get('authorization') ?? '', `Bearer ${apiKey}`))
        return refusal(401, 'Incorrect API key provided')
      const { input, model, voice, response_format: format = 'mp3' } = (json ?? {}) as Readonly<Record<string, unknown>>
      if (typeof input !== 'string' || input === '') return refusal(400, 'String should have at least 1 character')
      if (input.length > INPUT_CHARS_MAX) return refusal(400, `String should have at most ${INPUT_CHARS_MAX} characters`)
      if (typeof model !== 'string' || typeof voice !== 'string') return refusal(400, 'Field required')
      if (!FORMATS.includes(String(format))) return refusal(400, `Input should be '${FORMATS.join("', '")}'`)
      spoken.push(input)
      if (format === 'wav') return { status: 200, headers: { 'content-type': 'audio/wav' }, body: toneWav(input.length * MS_PER_CHAR) }
      if (format === 'opus') return { status: 200, headers: { 'content-type': 'audio/ogg' }, body: Buffer.from(`OggS${input}`) }
      return refusal(400, `This fake does not speak ${String(format)}`)
    },
    { port },
  )
  return { ...provider, apiKey, apiUrl: `${provider.url}/v1`, spoken }
}

const refusal = (status: number, message: string): ProviderReply => ({
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code: null } },
})
