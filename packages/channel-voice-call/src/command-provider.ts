/** Telnyx: each step of a call is a command to its Call Control API, and the answer to its events is always the usual one. */
import { bearer, callProvider, pathSegment, splitText, urlUnder } from '@sluice/kit'
import { textAt, valueAt } from '@sluice/kit/foreign-json'
import type { Provider, ProviderOptions } from './provider.ts'
import { type Instruction, type Parties, stepUrl } from './telephony.ts'
import { telnyxRequests, telnyxState, telnyxStream } from './telnyx.ts'

/** The longest payload of `speak`. */
const SPEAK_CHARS_MAX = 3000
const VOICE = 'female'
const STREAM_ID_CHARS = 12

export function telnyx(options: ProviderOptions): Provider {
  const { fetch, apiUrl, authToken, baseUrl, connectionId, from, language, voice = VOICE } = options
  const post = (path: `/${string}`, body: object, signal: AbortSignal) =>
    callProvider({
      fetch,
      provider: 'telnyx',
      url: urlUnder(apiUrl, path),
      method: 'POST',
      headers: bearer(authToken),
      body,
      signal,
      explain: (json) => {
        const [problem] = (valueAt(json, 'errors') as unknown[] | undefined) ?? []
        return textAt(problem, 'detail', 'title') || undefined
      },
    })
  /** The provider drops a command whose id it has seen. */
  const command = (call: string, action: string, body: object, id: string, signal: AbortSignal) =>
    post(`/calls/${pathSegment(call)}/actions/${action}` as `/${string}`, { ...body, command_id: id }, signal)

  async function speak(call: string, text: string, id: string, signal: AbortSignal): Promise<void> {
    const parts = splitText(text, { text: SPEAK_CHARS_MAX, unit: 'utf16' })
    for (const [index, payload] of parts.entries()) await command(call, 'speak', { payload, voice, language }, `${id}-${index}`, signal)
  }

  async function carryOut(parties: Parties, instruction: Instruction, signal: AbortSignal): Promise<void> {
    const { call } = parties
    switch (instruction.do) {
      case 'accept':
        await command(call, 'answer', { client_state: telnyxState(parties) }, `${call}-answer`, signal)
        return
      case 'reject':
        await command(call, 'reject', { cause: instruction.reason === 'busy' ? 'USER_BUSY' : 'CALL_REJECTED' }, `${call}-reject`, signal)
        return
      case 'talk':
        await command(
          call,
          'transcription_start',
          { language: language.slice(0, 2), transcription_tracks: 'inbound' },
          `${call}-listen`,
          signal,
        )
        if (instruction.text) await speak(call, instruction.text, `${call}-greeting`, signal)
        return
      case 'stream': {
        const audio = { stream_track: 'inbound_track', stream_bidirectional_mode: 'rtp', stream_bidirectional_codec: 'PCMU' }
        // The id is the same while this stream is not connected, and another for the next stream.
        const id = `${call}-${instruction.url.slice(-STREAM_ID_CHARS)}`
        await command(call, 'streaming_start', { stream_url: instruction.url, ...audio }, id, signal)
        return
      }
      case 'hangUp':
        await command(call, 'hangup', {}, `${call}-hangup`, signal)
        return
      case 'wait':
    }
  }

  return {
    name: 'telnyx',
    requests: telnyxRequests,
    stream: telnyxStream,
    asksAgain: false,
    async answer(parties, instruction, signal) {
      await carryOut(parties, instruction, signal)
      return undefined
    },
    say: ({ call }, text, token, signal) => speak(call, text, token, signal),
    async hangUp(call, signal) {
      await command(call, 'hangup', {}, `${call}-hangup`, signal)
    },
    async dial({ to, token, ringSecs, secsMax }, signal) {
      const state = telnyxState({ remote: to, local: from, direction: 'outbound' }, token)
      const about = { connection_id: connectionId, to, from, webhook_url: stepUrl(baseUrl), client_state: state, command_id: token }
      await post('/calls', { ...about, timeout_secs: ringSecs, time_limit_secs: secsMax }, signal)
    },
  }
}
