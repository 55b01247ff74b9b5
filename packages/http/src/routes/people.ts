/** `/api/people`: the accounts of people that are linked, and the codes that link the account of the caller. */
import { isConfirmed, type LinkedPerson, shownAccount, tellOfChanges } from '@sluice/delivery'
import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, parseSenderKey, type Route, type RouteRequest } from '@sluice/sdk'
import * as v from 'valibot'
import { personOfRequest } from '../auth/identity.ts'

/** Each call may write to the store and to the audit log. */
const CALLS_PER_MINUTE = 30

const personSchema = v.object({
  owner: v.pipe(v.string(), v.description('The account that owns the memories, and under which limits count')),
  accounts: v.array(
    v.object({
      account: v.pipe(v.string(), v.description('Its key: `channel:<channel>/<account>/<sender>`, `device:<id>`, `local` or `cli`')),
      shown: v.pipe(v.string(), v.description('The account in words')),
      name: v.pipe(
        v.nullable(v.string()),
        v.description('The name of the sender, or its id where the platform gave no name; null for a device and the command line'),
      ),
      channel: v.pipe(v.nullable(v.string()), v.description('The channel of the sender; null for a device and the command line')),
      linked_at: v.string(),
      confirmed: v.pipe(
        v.array(v.string()),
        v.description('The accounts whose standing counts for this one too, because both sides have confirmed it'),
      ),
    }),
  ),
})
/** A person with linked accounts, as the API answers it. */
export type ShownPerson = v.InferOutput<typeof personSchema>

const codeSchema = v.object({ code: v.string(), expires_at: v.string() })
/** A code that links the account of the caller. */
export type LinkCode = v.InferOutput<typeof codeSchema>

const shown = (person: LinkedPerson): ShownPerson => ({
  owner: person[0]?.account ?? '',
  accounts: person.map((one) => ({
    account: one.account,
    shown: shownAccount(one),
    name: one.name ?? parseSenderKey(one.account)?.sender ?? null,
    channel: parseSenderKey(one.account)?.channel ?? null,
    linked_at: isoTime(one.linkedAtMs),
    confirmed: person.flatMap((other) => (isConfirmed(person, one.account, other) ? [other.account] : [])),
  })),
})

type Asking = Pick<RouteRequest, 'by' | 'device' | 'onControlSocket'>

const callerOf = (request: Asking) => ({ account: personOfRequest(request), by: request.by })

/** What each refusal says: its code, and the cause and the cure. */
const REFUSALS = {
  wrong: ['invalid_request', 'code: it is wrong, used or too old. Make a new one on the other account.'],
  tries: ['rate_limited', 'Too many wrong codes were typed. Try again in an hour.'],
  own: ['conflict', 'This account made the code, which is void now. Type a new one on the other account.'],
  taken: ['conflict', 'Both accounts are linked already. Unlink one of them first.'],
  full: ['conflict', 'No further account can be linked with this one.'],
} as const

export function peopleRoutes({ people, store, delivery, clock, snapshot }: Runtime): Route[] {
  const tell = (): Promise<void> =>
    tellOfChanges({
      people,
      store,
      clock,
      channels: () => snapshot().channels,
      texts: () => snapshot().gateway.texts,
      onReplies: (replies) => delivery.queued(replies),
    })

  const notLinked = (account: string): AppError => new AppError('not_found', `The account ${account} is not linked with another one.`)

  /** Returns the account of a request. Another account than the caller's is for operators. */
  const accountIn = ({ params: { account = '' }, role, ...request }: Asking & Pick<RouteRequest, 'params' | 'role'>): string => {
    const own = personOfRequest(request)
    if (account !== own && role !== 'operator' && people.personOf(own)?.every((one) => one.account !== account) !== false)
      throw notLinked(account)
    return account
  }

  return [
    defineRoute({
      method: 'GET',
      path: '/api/people',
      summary: 'The people whose accounts are linked',
      auth: 'operator',
      answers: { 200: { description: 'The people', schema: v.object({ people: v.array(personSchema) }) } },
      async handle() {
        await people.refresh()
        return { people: people.list().map(shown) }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/people/codes',
      callsPerMinute: CALLS_PER_MINUTE,
      summary: 'Make a code for the account of the caller. Typed on another account within ten minutes, it links both',
      auth: 'client',
      answers: { 200: { description: 'The code, which is shown this once', schema: codeSchema } },
      async handle(request) {
        const { code, expiresAtMs } = await people.newCode(callerOf(request))
        return { code, expires_at: isoTime(expiresAtMs) }
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/people/links',
      callsPerMinute: CALLS_PER_MINUTE,
      summary: 'Link the account of the caller with the account that made a code',
      auth: 'client',
      body: v.object({ code: v.pipe(v.string(), v.maxLength(100)) }),
      answers: { 200: { description: 'The person', schema: personSchema } },
      async handle({ body, ...request }) {
        const redeemed = await people.redeem(callerOf(request), body.code)
        if (redeemed.outcome === 'linked') {
          await tell()
          return shown(redeemed.person)
        }
        const [code, text] = REFUSALS[redeemed.outcome]
        throw new AppError(code, text)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/people/:account',
      summary: 'The person of an account; a client sees its own',
      auth: 'client',
      answers: { 200: { description: 'The person', schema: personSchema } },
      async handle(request) {
        await people.refresh()
        const account = accountIn(request)
        const person = people.personOf(account)
        if (!person) throw notLinked(account)
        return shown(person)
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/people/:account',
      callsPerMinute: CALLS_PER_MINUTE,
      summary: 'Separate an account from the others of its person, at once; a client separates those of its own person',
      auth: 'client',
      answers: { 200: { description: 'Separated', schema: v.object({ unlinked: v.string(), from: v.array(v.string()) }) } },
      async handle(request) {
        await people.refresh()
        const account = accountIn(request)
        const change = await people.unlink({ account, by: request.by, isByOther: account !== personOfRequest(request) })
        if (!change) throw notLinked(account)
        await tell()
        return { unlinked: account, from: change.others.map((one) => one.account) }
      },
    }),
  ]
}
