/** Twilio and Plivo: both ask for XML at each step of a call, and differ in the names of its elements and in their REST API. */
import { callProvider, type ProviderCall, pathSegment, splitText, urlUnder } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { plivoRequests, plivoStream } from './plivo.ts'
import type { Provider, ProviderOptions } from './provider.ts'
import { attributes, type Dial, type Instruction, stepUrl, xml, xmlAnswer } from './telephony.ts'
import { twilioRequests, twilioStream } from './twilio.ts'

/** The longest text of one element: Twilio's limit for `Say` with a Polly voice, and for any voice the one after URL encoding. */
const SAY_CHARS_MAX = 3000
const SAY_ENCODED_MAX = 4500
const WAIT_SECS = 60
const REQUEST_MS = 60_000

type Attributes = Readonly<Record<string, string | undefined>>
/** A request to the REST API: the path below the calls of the account, and its fields. */
interface RestCall {
  /** Default: POST. */
  readonly method?: 'DELETE'
  readonly path: string
  readonly fields?: Readonly<Record<string, string | number>>
}

/** The names that one provider uses. */
interface Dialect extends Pick<Provider, 'name' | 'requests' | 'stream'> {
  readonly elements: { readonly say: string; readonly listen: string; readonly wait: string; readonly reject: string }
  /** The attributes of the element that listens. */
  listening(options: { readonly action: string; readonly silenceSecs: string; readonly language: string }): Attributes
  /** The element that connects a media stream. */
  streaming(url: string): string
  /** How a request carries its fields. */
  body(fields: Readonly<Record<string, string | number>>): Pick<ProviderCall, 'body'> & { readonly contentType?: string }
  /** The path of the calls of an account. */
  calls(account: string): `/${string}`
  transfer(call: string, url: string): RestCall
  hangUp(call: string): RestCall
  dial(dial: Dial & { readonly from: string; readonly url: string; readonly statusUrl: string }): RestCall
}

const TWILIO: Dialect = {
  name: 'twilio',
  requests: twilioRequests,
  stream: twilioStream,
  elements: { say: 'Say', listen: 'Gather', wait: 'Pause', reject: 'Reject' },
  listening: ({ action, silenceSecs, language }) => ({
    input: 'speech',
    speechTimeout: 'auto',
    timeout: silenceSecs,
    action,
    method: 'POST',
    language,
  }),
  streaming: (url) => `<Connect><Stream${attributes({ url })}/></Connect>`,
  body: (fields) => ({
    body: formOf(fields),
    contentType: 'application/x-www-form-urlencoded',
  }),
  calls: (account) => `/Accounts/${pathSegment(account)}/Calls`,
  transfer: (call, Url) => ({ path: `/${pathSegment(call)}.json`, fields: { Url, Method: 'POST' } }),
  hangUp: (call) => ({ path: `/${pathSegment(call)}.json`, fields: { Status: 'completed' } }),
  dial: ({ to: To, from: From, url: Url, statusUrl, ringSecs: Timeout, secsMax: TimeLimit }) => {
    const status = { StatusCallback: statusUrl, StatusCallbackMethod: 'POST', StatusCallbackEvent: 'completed' }
    return { path: '.json', fields: { To, From, Url, Method: 'POST', Timeout, TimeLimit, ...status } }
  },
}

const PLIVO: Dialect = {
  name: 'plivo',
  requests: plivoRequests,
  stream: plivoStream,
  elements: { say: 'Speak', listen: 'GetInput', wait: 'Wait', reject: 'Hangup' },
  listening: ({ action, silenceSecs, language }) => ({
    action,
    method: 'POST',
    inputType: 'speech',
    executionTimeout: silenceSecs,
    speechEndTimeout: '2',
    language,
  }),
  streaming(url) {
    const about = { bidirectional: 'true', keepCallAlive: 'true', contentType: 'audio/x-mulaw;rate=8000' }
    return `<Stream${attributes(about)}>${xml(url)}</Stream>`
  },
  body: (fields) => ({ body: fields }),
  calls: (account) => `/Account/${pathSegment(account)}/Call`,
  transfer: (call, aleg_url) => ({ path: `/${pathSegment(call)}/`, fields: { legs: 'aleg', aleg_url, aleg_method: 'POST' } }),
  hangUp: (call) => ({ path: `/${pathSegment(call)}/`, method: 'DELETE' }),
  dial: ({ to, from, url, statusUrl, ringSecs, secsMax }) => {
    const urls = { answer_url: url, answer_method: 'POST', hangup_url: statusUrl }
    return { path: '/', fields: { from: digits(from), to: digits(to), ...urls, ring_timeout: ringSecs, time_limit: secsMax } }
  },
}

export const twilio = (options: ProviderOptions): Provider => formProvider(options, TWILIO)
export const plivo = (options: ProviderOptions): Provider => formProvider(options, PLIVO)

function formProvider(options: ProviderOptions, dialect: Dialect): Provider {
  const { baseUrl, from } = options
  const { name, requests, stream } = dialect
  return {
    name,
    requests,
    stream,
    asksAgain: true,
    answer: async (_parties, instruction) => xmlAnswer(toXml(instruction, options, dialect)),
    async say({ call }, _text, token, signal) {
      await rest(dialect.transfer(call, stepUrl(baseUrl, { step: 'say', token })), options, dialect, signal)
    },
    async hangUp(call, signal) {
      await rest(dialect.hangUp(call), options, dialect, signal)
    },
    async dial(dial, signal) {
      const urls = { url: stepUrl(baseUrl, { dial: dial.token }), statusUrl: stepUrl(baseUrl, { step: 'status' }) }
      await rest(dialect.dial({ ...dial, ...urls, from }), options, dialect, signal)
    },
  }
}

function toXml(instruction: Instruction, options: ProviderOptions, { elements, listening, streaming }: Dialect): string {
  const { baseUrl, language, silenceSecs, voice } = options
  const say = (text: string | undefined): string =>
    text === undefined || text === ''
      ? ''
      : sayParts(text)
          .map((part) => `<${elements.say}${attributes({ voice, language })}>${xml(part)}</${elements.say}>`)
          .join('')
  const redirect = (step: Readonly<Record<string, string>>): string => `<Redirect method="POST">${xml(stepUrl(baseUrl, step))}</Redirect>`
  switch (instruction.do) {
    case 'talk': {
      const times = String(instruction.silences + 1)
      const action = heardUrl(options, times)
      const about = attributes(listening({ action, silenceSecs: String(silenceSecs), language }))
      return `<${elements.listen}${about}>${say(instruction.text)}</${elements.listen}>${redirect({ step: 'silent', times })}`
    }
    case 'stream':
      return `${streaming(instruction.url)}${redirect({ again: '1' })}`
    case 'reject':
      return `<${elements.reject}${attributes({ reason: instruction.reason === 'busy' ? 'busy' : 'rejected' })}/>`
    case 'hangUp':
      return `${say(instruction.text)}<Hangup/>`
    default:
      return `<${elements.wait} length="${WAIT_SECS}"/>${redirect({ step: 'wait' })}`
  }
}

/** Splits a text until each part is within both limits of `Say`. */
export function sayParts(text: string, charsMax = SAY_CHARS_MAX): readonly string[] {
  return splitText(text, { text: charsMax, unit: 'utf16' }).flatMap((part) => {
    const encoded = encodedLength(part)
    if (encoded <= SAY_ENCODED_MAX) return [part]
    return sayParts(part, Math.max(1, Math.floor((part.length * SAY_ENCODED_MAX) / encoded)))
  })
}

const encodedLength = (text: string): number => new URLSearchParams([['', text]]).toString().replaceAll('+', '%20').length

async function rest({ path, fields, method }: RestCall, options: ProviderOptions, dialect: Dialect, signal: AbortSignal) {
  const { fetch, apiUrl, accountId, authToken } = options
  const { contentType, ...body } = fields ? dialect.body(fields) : {}
  const url = urlUnder(apiUrl, `${dialect.calls(accountId)}${path}`)
  const authorization = `Basic ${Buffer.from(`${accountId}:${authToken.reveal().trim()}`).toString('base64')}`
  await callProvider({
    fetch,
    provider: dialect.name,
    url,
    method: method ?? 'POST',
    headers: { authorization, ...(contentType !== undefined && { 'content-type': contentType }) },
    ...body,
    signal,
    timeoutMs: REQUEST_MS,
    explain: (json) => textAt(json, 'message', 'error') || undefined,
  })
}

/** The number `n` makes the id of the next words unique; a repeat of the request has the same number. */
const heardUrl = ({ baseUrl, nowMs }: ProviderOptions, times: string): string =>
  stepUrl(baseUrl, { step: 'heard', n: nowMs().toString(36), times })

const formOf = (fields: Readonly<Record<string, string | number>>): string =>
  new URLSearchParams(Object.entries(fields).map(([name, value]): [string, string] => [name, String(value)])).toString()

/** Plivo writes numbers without the plus sign. */
const digits = (number: string): string => number.replace(/^\+/, '')
