/** Reads the events of the providers that post forms: Twilio and Plivo name most fields alike. */
import { AppError, type Raw } from '@sluice/sdk/webhook'
import { type CallEvent, formOf, type Parties } from './telephony.ts'

export interface FormNames {
  readonly call: string
  readonly speech: string
}

/** The states of a call that has ended. */
const ENDED = new Set(['completed', 'busy', 'failed', 'no-answer', 'canceled', 'cancel', 'timeout'])
const SILENCES_MAX = 100

/**
 * The query names the step that our own instruction asked for: `heard` with a number `n`, `silent` with `times`, `wait`, `say` with a
 * `token`, or `status`.
 */
export function formEvent({ body, url }: Pick<Raw, 'body' | 'url'>, names: FormNames): CallEvent {
  const form = formOf(body)
  const parties = partiesOf(form, names)
  const step = url.searchParams.get('step')
  if (ENDED.has((form.get('CallStatus') ?? '').toLowerCase())) return { kind: 'ended', ...parties }
  if (step === 'status') return { kind: 'other' }
  if (step === 'silent') return { kind: 'silent', times: countIn(url), ...parties }
  if (step === 'wait') return { kind: 'waiting', ...parties }
  if (step === 'say') return { kind: 'fetching', token: url.searchParams.get('token') ?? '', ...parties }
  const speech = form.get(names.speech)?.trim()
  if (step === 'heard' || speech !== undefined) {
    if (!speech) return { kind: 'silent', times: countIn(url), ...parties }
    return { kind: 'heard', id: `${parties.call}/${url.searchParams.get('n') ?? '0'}`, text: speech, ...parties }
  }
  const token = url.searchParams.get('dial')
  return { kind: 'started', ...parties, ...(token !== null && { token }) }
}

function partiesOf(form: URLSearchParams, names: FormNames): Parties {
  const [call, from, to] = [names.call, 'From', 'To'].map((name) => form.get(name)?.trim() ?? '')
  if (!call || !from || !to) throw new AppError('invalid_request', `The request has no ${names.call}, From or To`)
  const isOutbound = (form.get('Direction') ?? '').toLowerCase().startsWith('outbound')
  return isOutbound ? { call, remote: to, local: from, direction: 'outbound' } : { call, remote: from, local: to, direction: 'inbound' }
}

function countIn(url: URL): number {
  const times = Number(url.searchParams.get('times'))
  return Number.isInteger(times) && times >= 0 ? Math.min(times, SILENCES_MAX) : 0
}
