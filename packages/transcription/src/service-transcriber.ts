/** Transcribes with an OpenAI-compatible service. */
import { callProvider, withoutTrailing } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import * as v from 'valibot'
import type { TranscriptionConfig } from './config.ts'
import { permanentOrUnavailable, type Recording, type TranscribeOptions, type Transcriber } from './recording.ts'

const PROVIDER = 'the transcription service'

const answerSchema = v.object({ text: v.string() })
const refusalSchema = v.object({ error: v.object({ message: v.string() }) })

export class ServiceTranscriber implements Transcriber {
  readonly #fetch: Host['fetch']
  readonly #config: TranscriptionConfig
  readonly #apiKey: string

  constructor(fetch: Host['fetch'], config: TranscriptionConfig) {
    this.#fetch = fetch
    this.#config = config
    this.#apiKey = config.api_key?.reveal().trim() ?? ''
  }

  async transcribe(recording: Recording, { signal }: TranscribeOptions): Promise<string> {
    const { api_url, timeout_secs } = this.#config
    const apiKey = this.#apiKey
    const { json } = await callProvider({
      fetch: this.#fetch,
      provider: PROVIDER,
      url: `${withoutTrailing(api_url, '/')}/audio/transcriptions`,
      method: 'POST',
      ...(apiKey !== '' && { headers: { authorization: `Bearer ${apiKey}` } }),
      body: this.#formOf(recording),
      signal,
      timeoutMs: timeout_secs * 1000,
      explain: (answer) => (v.is(refusalSchema, answer) ? withoutKey(answer.error.message, apiKey) : undefined),
    }).catch((error: unknown) => {
      throw signal.aborted ? new AppError('aborted', 'The transcription was aborted') : permanentOrUnavailable(error)
    })
    if (!v.is(answerSchema, json)) throw new AppError('unavailable', `${PROVIDER} answered without a text`)
    return json.text
  }

  #formOf({ bytes, fileName, mime = '' }: Recording): FormData {
    const { model, language } = this.#config
    const form = new FormData()
    form.set('file', new Blob([Uint8Array.from(bytes)], { type: mime }), fileName)
    form.set('model', model)
    form.set('response_format', 'json')
    if (language !== undefined) form.set('language', language)
    return form
  }
}

/** Removes the key, which a service may quote in its refusal. */
const withoutKey = (message: string, key: string): string => (key === '' ? message : message.replaceAll(key, '[secret]'))
