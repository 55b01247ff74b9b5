/** Speaks with an OpenAI-compatible service. */
import { bearer, downloadFile, withoutTrailing } from '@sluice/kit'
import type { Host, Speak } from '@sluice/sdk'
import { AUDIO_BYTES_MAX, checkFormat, MEDIA_TYPES } from './audio.ts'
import type { SpeechConfig } from './config.ts'

const SERVICE = 'the speech service'
/** The names of the formats in requests: `opus` is Opus in an Ogg container. */
const RESPONSE_FORMATS = { wav: 'wav', ogg: 'opus' } as const

export function speakByService(fetch: Host['fetch'], { api_url, api_key, model, voice, timeout_secs }: SpeechConfig): Speak {
  return async (text, { formats, signal }) => {
    const format = formats[0] ?? 'wav'
    const { bytes } = await downloadFile({
      provider: SERVICE,
      what: 'audio file',
      bytesMax: AUDIO_BYTES_MAX,
      signal,
      isAuthorized: true,
      timeoutMs: timeout_secs * 1000,
      request: (limited) =>
        fetch(`${withoutTrailing(api_url, '/')}/audio/speech`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(api_key && bearer(api_key)) },
          body: JSON.stringify({ model, voice, input: text, response_format: RESPONSE_FORMATS[format] }),
          redirect: 'manual',
          signal: limited,
        }),
    })
    checkFormat(bytes, format, SERVICE)
    return { bytes, format, mime: MEDIA_TYPES[format] }
  }
}
