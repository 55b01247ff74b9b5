/** Mutates a request: one to three changes of its headers, query, body or time. */

import type { Random } from '@sluice/testkit/random'
import { mutateBytes } from '@sluice/testkit/webhook-fuzz/mutate-bytes'
import type { WebhookRequest } from '@sluice/testkit/webhook-fuzz/request'
import type { Scheme } from '@sluice/testkit/webhook-fuzz/scheme'
import { mutateText } from './mutate-text.ts'

/** A changed request and its changes. */
export interface Mutation {
  readonly request: WebhookRequest
  /** The names of the changes, in order. */
  readonly steps: readonly string[]
}

interface Step {
  readonly request: WebhookRequest
  readonly name: string
}

type Mutate = (request: WebhookRequest, random: Random, donor: WebhookRequest, scheme: Scheme) => Step

const ANOTHER_CHANGE = 0.3
/** Seconds around the 300 s window and far outside it. */
const SHIFTS_SECS = [1, 299, 299.999, 300, 300.001, 301, 600, 3600, 86_400, 1e6, 1e9, 2e9] as const

const nameIn = ({ headers }: WebhookRequest, random: Random): string => {
  const names = Object.keys(headers)
  return names.length > 0 ? random.pick(names) : 'authorization'
}

const header: Mutate = (request, random, donor) => {
  const name = nameIn(request, random)
  const changed = mutateText(request.headers[name] ?? '', random, donor.headers[name] ?? '')
  return { request: { ...request, headers: { ...request.headers, [name]: changed.value } }, name: `${name}: ${changed.name}` }
}

const query: Mutate = (request, random, donor) => {
  const changed = mutateText(request.query, random, donor.query)
  return { request: { ...request, query: changed.value }, name: `query: ${changed.name}` }
}

const body: Mutate = (request, random, donor) => {
  const changed = mutateBytes(request.body, random, donor.body)
  return { request: { ...request, body: changed.body }, name: `body: ${changed.name}` }
}

const structure: Mutate = (request, random, donor) => {
  const name = nameIn(request, random)
  const other = nameIn(random.chance(0.5) ? request : donor, random)
  const { [name]: value = '', ...rest } = request.headers
  const [what, headers] = random.pick<[string, Record<string, string>]>([
    ['removed', rest],
    ['repeated', { ...rest, [name]: `${value}, ${value}` }],
    ['repeated with another value', { ...rest, [name]: `${value}, ${donor.headers[name] ?? ''}` }],
    ['repeated, the other value first', { ...rest, [name]: `${donor.headers[name] ?? ''}, ${value}` }],
    ['under another name', { ...rest, [`${name}-`]: value }],
    ['under a similar name', { ...rest, [name.replace('256', '')]: value, [name.replace('-', '_')]: value }],
    [`swapped with ${other}`, { ...request.headers, [name]: request.headers[other] ?? '', [other]: value }],
    ['from another request', { ...rest, [name]: donor.headers[name] ?? '' }],
  ])
  return { request: { ...request, headers }, name: `${name} ${what}` }
}

const parts: Mutate = (request, random, donor) => {
  const [what, change] = random.pick<[string, Partial<WebhookRequest>]>([
    ['headers', { headers: donor.headers }],
    ['query', { query: donor.query }],
    ['body', { body: donor.body }],
    ['query appended', { query: `${request.query}&${donor.query}` }],
    ['query as a header', { headers: { ...request.headers, authorization: request.query } }],
  ])
  return { request: { ...request, ...change }, name: `${what} of another request` }
}

const time: Mutate = (request, random) => {
  const secs = random.pick(SHIFTS_SECS) * random.pick([1, -1])
  return { request: { ...request, atMs: request.atMs + secs * 1000 }, name: `received ${secs} s off` }
}

const forged: Mutate = (request, random, _donor, scheme) => ({ request: scheme.forge(request, random), name: 'forged' })

/** The changes that suit a scheme; likelier ones are listed more than once. */
export function mutationsOf({ coversBody, isTimed, valid }: Scheme): readonly Mutate[] {
  const hasHeaders = valid.some(({ headers }) => Object.keys(headers).length > 0)
  const hasQuery = valid.some(({ query }) => query !== '')
  return [
    forged,
    forged,
    parts,
    ...(hasHeaders ? [header, header, header, header, structure] : []),
    ...(hasQuery ? [query, query, query] : []),
    ...(coversBody ? [body, body] : []),
    ...(isTimed ? [time] : []),
  ]
}

/** Changes a random valid request. */
export function mutate(scheme: Scheme, mutations: readonly Mutate[], random: Random): Mutation {
  const steps: string[] = []
  let request = random.pick(scheme.valid)
  let change: Mutate
  do {
    const donor = random.pick(scheme.valid)
    change = random.pick(mutations)
    const step = change(request, random, donor, scheme)
    request = step.request
    steps.push(step.name)
    // A forged request is not changed again, because a change could make it valid.
  } while (change !== forged && random.chance(ANOTHER_CHANGE))
  return { request, steps }
}
