/** Twilio and Plivo: both ask for XML at each step of a call, and differ in its elements and in their REST API. */
import { callProvider, type ProviderAnswer, type ProviderCall, pathSegment, splitText, urlUnder } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { plivoRequests, plivoStream } from './plivo.ts'
import type { Provider, ProviderOptions } from './provider.ts'
import { attributes, type Instruction, stepUrl, xml, xmlAnswer } from './telephony.ts'
import { twilioRequests, twilioStream } from './twilio.ts'

/** The longest text of one element: Twilio's limit for `Say`. */
const SAY_CHARS_MAX = 4000
const WAIT_SECS = 60
const SPEECH_SECS_MAX = 60

export function twilio(options: ProviderOptions): Provider {
  const { accountId, authToken, baseUrl, from, language, silenceSecs, voice } = options
  const say = (text: string): string => inParts(text, (part) => `<Say${attributes({ voice, language })}>${xml(part)}</Say>`)
  const redirect = (step: Readonly<Record<string, string>>): string => `<Redirect method="POST">${xml(stepUrl(baseUrl, step))}</Redirect>`
  const toXml = (instruction: Instruction): string => {
    switch (instruction.do) {
      case 'talk': {
        const { text, silences } = instruction
        const action = heardUrl(options, silences)
        const gather = { input: 'speech', speechTimeout: 'auto', timeout: String(silenceSecs), action, method: 'POST', language }
        return `<Gather${attributes(gather)}>${text ? say(text) : ''}</Gather>${redirect({ step: 'silent', times: String(silences + 1) })}`
      }
      case 'stream':
        return `<Connect><Stream${attributes({ url: instruction.url })}/></Connect>${redirect({ again: '1' })}`
      case 'reject':
        return `<Reject${attributes({ reason: instruction.reason === 'busy' ? 'busy' : 'rejected' })}/>`
      case 'hangUp':
        return `${instruction.text ? say(instruction.text) : ''}<Hangup/>`
      default:
        return `<Pause length="${WAIT_SECS}"/>${redirect({ step: 'wait' })}`
    }
  }
  const calls = (): `/${string}` => `/Accounts/${pathSegment(accountId)}/Calls`
  const post = (path: `/${string}`, form: Readonly<Record<string, string>>, signal: AbortSignal): Promise<ProviderAnswer> =>
    callProvider({
      ...requestOf(options, 'twilio', path, signal),
      headers: { authorization: basic(accountId, authToken.reveal()), 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
    })
  return {
    name: 'twilio',
    requests: twilioRequests,
    stream: twilioStream,
    asksAgain: true,
    answer: async (_parties, instruction) => xmlAnswer(toXml(instruction)),
    async say({ call }, _text, token, signal) {
      await post(`${calls()}/${pathSegment(call)}.json` as const, { Url: stepUrl(baseUrl, { step: 'say', token }), Method: 'POST' }, signal)
    },
    async hangUp(call, signal) {
      await post(`${calls()}/${pathSegment(call)}.json` as const, { Status: 'completed' }, signal)
    },
    async dial({ to, token, ringSecs, secsMax }, signal) {
      const form = { To: to, From: from, Url: stepUrl(baseUrl, { dial: token }), Method: 'POST' }
      const limits = { Timeout: String(ringSecs), TimeLimit: String(secsMax) }
      const status = {
        StatusCallback: stepUrl(baseUrl, { step: 'status' }),
        StatusCallbackMethod: 'POST',
        StatusCallbackEvent: 'completed',
      }
      await post(`${calls()}.json`, { ...form, ...limits, ...status }, signal)
    },
  }
}

export function plivo(options: ProviderOptions): Provider {
  const { accountId, authToken, baseUrl, from, language, silenceSecs, voice } = options
  const speak = (text: string): string => inParts(text, (part) => `<Speak${attributes({ voice, language })}>${xml(part)}</Speak>`)
  const redirect = (step: Readonly<Record<string, string>>): string => `<Redirect method="POST">${xml(stepUrl(baseUrl, step))}</Redirect>`
  const toXml = (instruction: Instruction): string => {
    switch (instruction.do) {
      case 'talk': {
        const { text, silences } = instruction
        const input = {
          action: heardUrl(options, silences),
          method: 'POST',
          inputType: 'speech',
          executionTimeout: String(silenceSecs),
          speechEndTimeout: '2',
          language,
        }
        return `<GetInput${attributes(input)}>${text ? speak(text) : ''}</GetInput>${redirect({ step: 'silent', times: String(silences + 1) })}`
      }
      case 'stream': {
        const stream = { bidirectional: 'true', keepCallAlive: 'true', contentType: 'audio/x-mulaw;rate=8000' }
        return `<Stream${attributes(stream)}>${xml(instruction.url)}</Stream>${redirect({ again: '1' })}`
      }
      case 'reject':
        return `<Hangup${attributes({ reason: instruction.reason === 'busy' ? 'busy' : 'rejected' })}/>`
      case 'hangUp':
        return `${instruction.text ? speak(instruction.text) : ''}<Hangup/>`
      default:
        return `<Wait length="${WAIT_SECS}"/>${redirect({ step: 'wait' })}`
    }
  }
  const calls = (): `/${string}` => `/Account/${pathSegment(accountId)}/Call`
  const request = (path: `/${string}`, signal: AbortSignal, change: Partial<ProviderCall> = {}): Promise<ProviderAnswer> =>
    callProvider({
      ...requestOf(options, 'plivo', path, signal),
      headers: { authorization: basic(accountId, authToken.reveal()) },
      ...change,
    })
  return {
    name: 'plivo',
    requests: plivoRequests,
    stream: plivoStream,
    asksAgain: true,
    answer: async (_parties, instruction) => xmlAnswer(toXml(instruction)),
    async say({ call }, _text, token, signal) {
      const body = { legs: 'aleg', aleg_url: stepUrl(baseUrl, { step: 'say', token }), aleg_method: 'POST' }
      await request(`${calls()}/${pathSegment(call)}/` as const, signal, { body })
    },
    async hangUp(call, signal) {
      await request(`${calls()}/${pathSegment(call)}/` as const, signal, { method: 'DELETE' })
    },
    async dial({ to, token, ringSecs, secsMax }, signal) {
      const urls = {
        answer_url: stepUrl(baseUrl, { dial: token }),
        answer_method: 'POST',
        hangup_url: stepUrl(baseUrl, { step: 'status' }),
      }
      const body = { from: digits(from), to: digits(to), ...urls, ring_timeout: ringSecs, time_limit: secsMax }
      await request(`${calls()}/`, signal, { body })
    },
  }
}

/** The number `n` makes the id of what is heard next unique; a repeat of the request has the same number. */
const heardUrl = ({ baseUrl, nowMs }: ProviderOptions, silences: number): string =>
  stepUrl(baseUrl, { step: 'heard', n: nowMs().toString(36), times: String(silences + 1) })

const inParts = (text: string, element: (part: string) => string): string =>
  splitText(text, { text: SAY_CHARS_MAX, unit: 'utf16' }).map(element).join('')

const requestOf = ({ fetch, apiUrl }: ProviderOptions, provider: string, path: `/${string}`, signal: AbortSignal): ProviderCall => ({
  fetch,
  provider,
  url: urlUnder(apiUrl, path),
  method: 'POST',
  signal,
  timeoutMs: SPEECH_SECS_MAX * 1000,
  explain: (json) => textAt(json, 'message', 'error') || undefined,
})

const basic = (user: string, password: string): string => `Basic ${Buffer.from(`${user}:${password.trim()}`).toString('base64')}`
/** Plivo writes numbers without the plus sign. */
const digits = (number: string): string => number.replace(/^\+/, '')
