/** A recording to an OpenAI-compatible service, its text back. */

import { callProvider, withoutTrailing } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import * as v from 'valibot'
import type { TranscriptionConfig } from './config.ts'
import type { Transcriber } from './recording.ts'

const PROVIDER = 'the transcription service'

const answer = v.object({ text: v.string() })
const refusal = v.object({ error: v.object({ message: v.string() }) })

export const byService =
  (host: Pick<Host, 'fetch'>, config: TranscriptionConfig): Transcriber =>
  async ({ bytes, fileName, mime = '' }, signal) => {
    const key = config.api_key?.reveal().trim() ?? ''
    const form = new FormData()
    form.set('file', new Blob([Uint8Array.from(bytes)], { type: mime }), fileName)
    form.set('model', config.model)
    form.set('response_format', 'json')
    if (config.language !== undefined) form.set('language', config.language)
    const { json } = await callProvider({
      fetch: host.fetch,
      provider: PROVIDER,
      url: `${withoutTrailing(config.api_url, '/')}/audio/transcriptions`,
      method: 'POST',
      ...(key !== '' && { headers: { authorization: `Bearer ${key}` } }),
      body: form,
      signal,
      timeoutMs: config.timeout_secs * 1000,
      explain: (said) => (v.is(refusal, said) ? withoutKey(said.error.message, key) : undefined),
    }).catch((error: unknown) => {
      throw signal.aborted ? new AppError('aborted', 'The transcription was cut off') : asPromised(error)
    })
    if (!v.is(answer, json)) throw new AppError('unavailable', `${PROVIDER} answered without a text`)
    return json.text
  }

/** A refusal of the key or of the model is the operator's to mend; what broke may be repeated, since nothing was changed. */
function asPromised(error: unknown): unknown {
  if (!(error instanceof AppError) || error.code === 'aborted' || error.code === 'invalid_request') return error
  const { retryAfterSecs } = error
  return new AppError('unavailable', error.message, { cause: error, ...(retryAfterSecs !== undefined && { retryAfterSecs }) })
}

/** A service may quote the key it refuses. */
const withoutKey = (message: string, key: string): string => (key === '' ? message : message.replaceAll(key, '[secret]'))
