/**
 * Linked people (docs/people.md): accounts of one person on several platforms. All links, codes and wrong tries are one value of the store,
 * which is swapped as a whole, so that no crash leaves half a link, and no account is in two links.
 */
import type { LimitedClient } from '@sluice/config'
import { inWindow } from '@sluice/kit'
import type { Ownership } from '@sluice/ownership'
import {
  AppError,
  type AuditKind,
  actionRecord,
  type Channel,
  type Clock,
  type Events,
  type GatewayTexts,
  gatewayText,
  isAtLeast,
  type KeyValue,
  type NewAudit,
  type NewReply,
  parseSenderKey,
  type Standing,
  type Store,
} from '@sluice/sdk'
import * as v from 'valibot'
import { noticesTo } from '../inbox/notice.ts'
import { standingOfSender } from '../inbox/standing-of-sender.ts'
import {
  addressSchema,
  CODE_MINUTES,
  codeSchema,
  HOUR_MS,
  hashOf,
  isOpen,
  matching,
  mayTry,
  newCode,
  nextCodeAtMs,
  type OpenCode,
  trySchema,
} from './codes.ts'
import {
  type Changing,
  isByRequest,
  isRemembered,
  LinkAnnouncer,
  type LinkChange,
  linkChangeSchema,
  madeBefore,
  namesOne,
  newChange,
  withChange,
} from './link-changes.ts'

/** The owner and the key of the value. */
const PEOPLE = 'people'
const LINKS = 'links'
const ACCOUNTS_MAX = 8
const PEOPLE_MAX = 5000
/** Other processes may write the value between a read and a write. */
const ATTEMPTS_MAX = 20

const accountSchema = v.object({
  /** As in `ToolContext.caller`, without the agent. */
  account: v.string(),
  name: v.exactOptional(v.string()),
  /** Its conversation with the agent, which gets a message about each change. */
  to: v.exactOptional(addressSchema),
  linkedAtMs: v.number(),
  /** The other accounts that may have the standing of this one. It counts only where the other account says so too. */
  confirms: v.array(v.string()),
})
export type LinkedAccount = v.InferOutput<typeof accountSchema>

/** The accounts of one person. The first one owns the memories, and limits count under its key. */
export type LinkedPerson = readonly LinkedAccount[]

const stateSchema = v.object({
  people: v.array(v.array(accountSchema)),
  codes: v.array(codeSchema),
  tries: v.array(trySchema),
  /** The codes that were made within the last hour. */
  made: v.optional(v.array(trySchema), []),
  /** The newest changes of links. */
  changes: v.optional(v.array(linkChangeSchema), []),
})
type State = v.InferOutput<typeof stateSchema>
const NOTHING: State = { people: [], codes: [], tries: [], made: [], changes: [] }

/** Who asks for a link. */
export interface LinkingAccount {
  readonly account: string
  readonly name?: string | undefined
  readonly to?: OpenCode['to']
  /** The actor in the audit log. */
  readonly by: string
  /** See `commandId`. Absent for a request of the API. */
  readonly command?: string
}

export type Redeemed =
  | { readonly outcome: 'linked'; readonly person: LinkedPerson; readonly other: Pick<LinkedAccount, 'account' | 'name' | 'to'> }
  /** `wrong`: no open code. `tries`: too many wrong codes. `own`: the code of this account. `taken`: both accounts are linked. `full`: no room. */
  | { readonly outcome: 'wrong' | 'tries' | 'own' | 'taken' | 'full' }

/** What `/link confirm` did: it confirmed `accounts`, or has to know which of the accounts that wait is meant. `isNew`: one was not confirmed before. */
export type Confirmed =
  | { readonly person: LinkedPerson; readonly accounts: readonly LinkedAccount[]; readonly isNew?: true; readonly waiting?: undefined }
  | {
      readonly waiting: readonly { readonly number: number; readonly account: LinkedAccount }[]
      readonly isNew?: undefined
      readonly accounts?: undefined
    }

export interface PeopleOptions {
  readonly store: Pick<Store, 'keyValue' | 'sops'>
  readonly ownership: Pick<Ownership, 'ownsAll'>
  readonly clock: Pick<Clock, 'nowMs'>
  readonly events: Pick<Events, 'emit'>
  channels(): readonly Channel[]
  /** Returns the senders of a channel who are operators. */
  operators(channel: string): readonly string[]
}

export class People {
  readonly #options: PeopleOptions
  readonly #keys: KeyValue
  /** The people by each of their accounts, as they were last read. */
  #known: ReadonlyMap<string, LinkedPerson> = new Map()
  #hasRead = false
  readonly #announcer: LinkAnnouncer

  constructor(options: PeopleOptions) {
    this.#options = options
    this.#announcer = new LinkAnnouncer(options)
    this.#keys = options.store.keyValue(PEOPLE)
  }

  /**
   * Reads the links where they may have changed: once, and each time where other nodes write them too. A value that cannot be read, or whose
   * HMAC is wrong, links no account; `link` and `unlink` then say why.
   */
  async refresh(): Promise<void> {
    if (this.#hasRead && this.#options.ownership.ownsAll) return
    try {
      await this.#read()
    } catch (error) {
      if (!isUnreadable(error)) throw error
      this.#take(NOTHING)
    }
  }

  /** Returns the person of an account, as it was last read. */
  personOf(account: string): LinkedPerson | undefined {
    return this.#known.get(account)
  }

  list(): readonly LinkedPerson[] {
    return [...new Set(this.#known.values())]
  }

  /** Returns a principal with its person, and with the standing of the person. An account that proves nothing, or that only `*` admits, gets neither. */
  principal(client: LimitedClient): LimitedClient {
    const person = this.personOf(client.client)
    const [owner] = person ?? []
    if (!owner || !isAtLeast(client.standing, 'listed')) return client
    return { ...client, person: owner.account, standing: this.standing(client.client, client.standing) }
  }

  /** Returns the other accounts of a principal's person. */
  besides({ client, person }: LimitedClient): string[] {
    return person === undefined ? [] : (this.personOf(client) ?? []).flatMap(({ account }) => (account === client ? [] : [account]))
  }

  /** Resolves to a principal as `principal` returns it, by the links as they are now. */
  async current(client: LimitedClient): Promise<LimitedClient> {
    await this.refresh()
    return this.principal(client)
  }

  /** Returns the standing of an account: the highest among its own standing and the standings of the accounts with which it is confirmed, in both directions. */
  standing(account: string, own: Standing): Standing {
    if (!parseSenderKey(account) || !isAtLeast(own, 'listed')) return own
    const person = this.personOf(account) ?? []
    return person.reduce((highest: Standing, other) => {
      if (!isConfirmed(person, account, other)) return highest
      const standing = this.#ownStanding(other.account)
      return isAtLeast(standing, 'listed') && isAtLeast(standing, highest) ? standing : highest
    }, own)
  }

  /** Makes the code of an account; an earlier one is void. Throws `rate_limited` while too many codes are open, or were made within an hour. */
  async newCode({ account, name, to, by }: LinkingAccount): Promise<{ readonly code: string; readonly expiresAtMs: number }> {
    const code = newCode()
    const atMs = this.#options.clock.nowMs()
    const untilMs = atMs + CODE_MINUTES * 60_000
    await this.#update(({ codes, made, ...state }) => {
      const others = codes.filter((one) => one.account !== account)
      const nextAtMs = nextCodeAtMs(made, others, account)
      if (nextAtMs !== undefined) throw tooManyCodes(nextAtMs - atMs)
      const open = { account, hash: hashOf(account, code), untilMs, ...(name !== undefined && { name }), ...(to && { to }) }
      return { state: { ...state, codes: [...others, open], made: [...made, { account, atMs }] }, result: undefined }
    })
    await this.#record('people_code_created', by, { account })
    return { code, expiresAtMs: untilMs }
  }

  /** Links the account with the one that asked for the code, which is used up. */
  async redeem(linking: LinkingAccount, text: string): Promise<Redeemed> {
    const { account, name, to, by } = linking
    let change: Made | undefined
    const redeemed = await this.#update<Redeemed>((state) => {
      const known = personIn(state, account)
      const before = linking.command === undefined ? undefined : madeBefore(state.changes, 'people_linked', linking)
      const [linked] = before?.others ?? []
      change = before && { change: before, isRepeat: true }
      if (known && linked) return { state, result: { outcome: 'linked', person: known, other: linked } }
      const nowMs = this.#options.clock.nowMs()
      if (!mayTry(state.tries, account)) return { state, result: { outcome: 'tries' } }
      const code = matching(state.codes, text)
      if (!code) return { state: { ...state, tries: [...state.tries, { account, atMs: nowMs }] }, result: { outcome: 'wrong' } }
      const codes = state.codes.filter((one) => one !== code)
      const refused = (outcome: 'own' | 'taken' | 'full') => ({ state: { ...state, codes }, result: { outcome } as const })
      if (code.account === account) return refused('own')
      const theirs = personIn(state, code.account)
      if (known && theirs) return refused('taken')
      const joined = theirs ?? known
      if (joined ? joined.length >= ACCOUNTS_MAX : state.people.length >= PEOPLE_MAX) return refused('full')
      const maker = newAccount(code, nowMs)
      const typist = newAccount({ account, name, to }, nowMs)
      const person = joined ? [...joined, theirs ? typist : maker] : [maker, typist]
      const people = [...state.people.filter((one) => one !== theirs && one !== known), person]
      change = { change: newChange('people_linked', linking, { others: [code], atMs: nowMs }) }
      const changes = withChange(state.changes, change.change)
      return { state: { ...state, codes, people, changes }, result: { outcome: 'linked', person, other: code } }
    })
    if (redeemed.outcome === 'linked') await this.#announce(change)
    // A code that is refused without a look at it is no try: nothing is written, however often an account repeats it.
    else if (redeemed.outcome !== 'own' && redeemed.outcome !== 'tries')
      await this.#record('people_link_refused', by, { account, reason: redeemed.outcome })
    return redeemed
  }

  /**
   * Confirms, for one account, that another one of its person may have its standing: the only one that waits for that, or the one that the words
   * name. Resolves to undefined for an account that is linked with no sender.
   */
  async confirm(linking: LinkingAccount, words = ''): Promise<Confirmed | undefined> {
    const nowMs = this.#options.clock.nowMs()
    const { made, confirmed } = await this.#update((state) => confirmIn(state, linking, { words, nowMs }))
    await this.#announce(made)
    return confirmed
  }

  /**
   * Separates an account from its person at once. Resolves to the change, with the accounts that it was linked with; undefined if it was not
   * linked. A repeated command finds its change again, and so does a repeated request until the change is `settled`.
   */
  async unlink(changing: Changing): Promise<LinkChange | undefined> {
    const { account } = changing
    const left = await this.#update<Made | undefined>((state) => {
      const before = personIn(state, account)
      const made = changing.command !== undefined || !before ? madeBefore(state.changes, 'people_unlinked', changing) : undefined
      if (made) return { state, result: { change: made, isRepeat: true } }
      const codes = state.codes.filter((one) => one.account !== account)
      const others = before?.filter((one) => one.account !== account)
      if (!others) return { state: { ...state, codes }, result: undefined }
      const after = others.map((one) => ({ ...one, confirms: one.confirms.filter((key) => key !== account) }))
      const people = state.people.flatMap((one) => (one === before ? (after.length > 1 ? [after] : []) : [one]))
      const own = changing.isByOther === true ? before?.find((one) => one.account === account) : undefined
      const change = newChange('people_unlinked', changing, { others, atMs: this.#options.clock.nowMs(), ...(own && { own }) })
      return { state: { ...state, codes, people, changes: withChange(state.changes, change) }, result: { change } }
    })
    await this.#announce(left)
    return left?.change
  }

  /** Resolves to the changes of requests whose other accounts may not have been told, once each is in the audit log. */
  async unsettled(): Promise<readonly LinkChange[]> {
    const { state } = await this.#read()
    const changes = state.changes.filter(isByRequest)
    for (const change of changes) await this.#announce({ change, isRepeat: true })
    return changes
  }

  /** Forgets the change of a request once the other accounts were told of it. */
  async settled({ id }: Pick<LinkChange, 'id'>): Promise<void> {
    await this.#update((state) => {
      const changes = state.changes.filter((one) => one.id !== id)
      return { state: changes.length < state.changes.length ? { ...state, changes } : state, result: undefined }
    })
  }

  /** Forgets the codes, the tries and the changes of accounts that are erased, once the changes of requests are in the audit log. Links stay. */
  async forget(isErased: (account: string) => boolean): Promise<void> {
    await this.unsettled()
    await this.#update((state) => ({ state: withoutErased(state, isErased), result: undefined }))
  }

  /** Deletes the codes, the tries and the changes that are too old to count. */
  async sweep(): Promise<void> {
    const { state: read } = await this.#read()
    if (withoutOld(read, this.#options.clock.nowMs()) !== read) await this.#update((state) => ({ state: { ...state }, result: undefined }))
  }

  /** Removes a code that others may have read. Writes nothing when no open code matches. */
  async revoke(text: string): Promise<void> {
    try {
      await this.#update((state) => {
        const code = matching(state.codes, text)
        return { state: code ? { ...state, codes: state.codes.filter((one) => one !== code) } : state, result: undefined }
      })
    } catch (error) {
      // An account cannot use a code of a value that cannot be read.
      if (!isUnreadable(error)) throw error
    }
  }

  #ownStanding(account: string): Standing {
    const { channels, operators } = this.#options
    const { channel: name, sender } = parseSenderKey(account) ?? {}
    const channel = channels().find((one) => one.name === name)
    return channel && sender !== undefined ? standingOfSender(channel, { sender }, operators(channel.name)) : 'unverified'
  }

  async #read(): Promise<{ readonly value: unknown; readonly state: State }> {
    const value = await this.#keys.get(LINKS)
    const parsed = value === undefined ? { success: true as const, output: NOTHING } : v.safeParse(stateSchema, value)
    if (!parsed.success)
      throw new AppError('config_invalid', 'The stored links of people cannot be read: a later release wrote them. Upgrade this node.')
    this.#take(parsed.output)
    return { value, state: parsed.output }
  }

  #take({ people }: State): void {
    this.#hasRead = true
    this.#known = new Map(people.flatMap((person) => person.map(({ account }) => [account, person] as const)))
  }

  async #update<Result>(change: (state: State) => { readonly state: State; readonly result: Result }): Promise<Result> {
    const { clock } = this.#options
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const { value, state: read } = await this.#read()
      const now = withoutOld(read, clock.nowMs())
      const { state, result } = change(now)
      if (state === now) return result
      if (!(await this.#keys.swap(LINKS, value, state))) continue
      this.#take(state)
      return result
    }
    throw new AppError('unavailable', 'Other processes keep changing the links of people. Try again.', { retryAfterSecs: 1 })
  }

  async #record(kind: AuditKind, by: string, detail: NewAudit['detail']): Promise<void> {
    const { store, clock } = this.#options
    await store.sops.record([actionRecord({ kind, atMs: clock.nowMs(), by, detail })])
  }

  async #announce(made: Made | undefined): Promise<void> {
    if (made) await this.#announcer.announce(made.change, made.isRepeat === true)
  }
}

/** The parts of the value next to the links. */
type Beside = Omit<State, 'people'>

/** Returns the same object if no row has gone. */
const ifLess = (state: State, kept: Beside): State =>
  (['codes', 'tries', 'made', 'changes'] as const).some((kind) => kept[kind].length < state[kind].length) ? { ...state, ...kept } : state

const withoutOld = (state: State, nowMs: number): State =>
  ifLess(state, {
    codes: state.codes.filter((one) => isOpen(one, nowMs)),
    tries: [...inWindow(state.tries, nowMs, HOUR_MS)],
    made: [...inWindow(state.made, nowMs, HOUR_MS)],
    changes: state.changes.filter((one) => isRemembered(one, nowMs)),
  })

const withoutErased = (state: State, isErased: (account: string) => boolean): State => {
  const isLeft = (one: { readonly account: string }): boolean => !isErased(one.account)
  return ifLess(state, {
    codes: state.codes.filter(isLeft),
    tries: state.tries.filter(isLeft),
    made: state.made.filter(isLeft),
    changes: state.changes.filter((one) => !namesOne(one, isErased)),
  })
}

interface Made {
  readonly change: LinkChange
  /** The change was made before. */
  readonly isRepeat?: true
}

interface Confirming {
  readonly confirmed: Confirmed | undefined
  readonly made?: Made
}

/** Confirms an account, as `People.confirm`. */
function confirmIn(
  state: State,
  linking: LinkingAccount,
  { words, nowMs }: { readonly words: string; readonly nowMs: number },
): { readonly state: State; readonly result: Confirming } {
  const unchanged = (confirmed: Confirmed | undefined, made?: Made) => ({ state, result: { confirmed, ...(made && { made }) } })
  const before = personIn(state, linking.account)
  const own = before?.find((one) => one.account === linking.account)
  const others = before?.filter((one) => one !== own && parseSenderKey(one.account)) ?? []
  if (!before || !own || others.length === 0) return unchanged(undefined)
  const known = linking.command === undefined ? undefined : madeBefore(state.changes, 'people_confirmed', linking)
  const again = known && others.find((one) => one.account === known.others[0]?.account)
  if (known && again) return unchanged({ person: before, accounts: [again], isNew: true }, { change: known, isRepeat: true })
  const waiting = others.flatMap((one, at) => (own.confirms.includes(one.account) ? [] : [{ number: at + 1, account: one }]))
  const named = words === '' ? waiting.map((one) => one.account) : others.filter((one, at) => isNamed(one, at + 1, words))
  const [chosen] = named
  if (words === '' && !chosen) return unchanged({ person: before, accounts: others })
  if (!chosen || named.length > 1) return unchanged({ waiting })
  if (own.confirms.includes(chosen.account)) return unchanged({ person: before, accounts: [chosen] })
  const after = before.map((one) => (one === own ? { ...one, confirms: [...one.confirms, chosen.account] } : one))
  const people = state.people.map((one) => (one === before ? after : one))
  const change = newChange('people_confirmed', linking, { others: [chosen], atMs: nowMs })
  return {
    state: { ...state, people, changes: withChange(state.changes, change) },
    result: { confirmed: { person: after, accounts: [chosen], isNew: true }, made: { change } },
  }
}

function tooManyCodes(waitMs: number): AppError {
  const retryAfterSecs = Math.max(1, Math.ceil(waitMs / 1000))
  return new AppError('rate_limited', `Too many codes were made. Try again in ${Math.ceil(retryAfterSecs / 60)} minutes.`, {
    retryAfterSecs,
  })
}

const isUnreadable = (error: unknown): boolean => error instanceof AppError && error.code === 'config_invalid'

/** Whether words name an account: its number in the person, its sender, or its key. */
const isNamed = ({ account }: LinkedAccount, number: number, words: string): boolean =>
  words === String(number) || words === account || words === parseSenderKey(account)?.sender

const personIn = ({ people }: State, account: string) => people.find((person) => person.some((one) => one.account === account))

const newAccount = ({ account, name, to }: Pick<LinkingAccount, 'account' | 'name' | 'to'>, linkedAtMs: number): LinkedAccount => ({
  account,
  linkedAtMs,
  confirms: [],
  ...(name !== undefined && { name }),
  ...(to && { to }),
})

/** Whether two accounts of a person have confirmed each other. */
export const isConfirmed = (person: LinkedPerson, account: string, { account: other, confirms }: LinkedAccount): boolean =>
  confirms.includes(account) && person.some((one) => one.account === account && one.confirms.includes(other))

/** Returns an account as people read it. */
export function shownAccount({ account, name }: Pick<LinkingAccount, 'account' | 'name'>, texts: GatewayTexts = {}): string {
  const sender = parseSenderKey(account)
  if (!sender) return gatewayText(account.startsWith('device:') ? 'account_device' : 'account_local', texts)
  const shown = name === undefined || name === sender.sender ? sender.sender : `${name} (${sender.sender})`
  return gatewayText('account_sender', texts, { sender: shown, channel: sender.channel })
}

/** Returns who has to learn of a link that an account has made: the other accounts of its person, each with the accounts that are new to it. */
export function toldOfLink(person: LinkedPerson, account: string) {
  const newest = person.slice(-1)
  const others = person.filter((one) => one.account !== account)
  return others.map((to) => ({ to, accounts: newest.includes(to) ? person.filter((one) => one !== to) : newest }))
}

/** Returns the messages that tell an account of a change of its link; none for an account that has no conversation. */
export function linkNotices(
  channels: readonly Channel[],
  { account, to }: Pick<LinkedAccount, 'account' | 'to'>,
  text: string,
  nowMs: number,
): NewReply[] {
  const sender = parseSenderKey(account)
  const channel = channels.find(({ name }) => name === sender?.channel)
  return sender && channel && to ? noticesTo(channel, { account: sender.account, to }, text, nowMs) : []
}
