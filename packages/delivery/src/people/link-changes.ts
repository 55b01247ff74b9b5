/**
 * Changes of links, of which the audit log, operators and the other accounts learn. Each change is stored in the commit that makes it, so that
 * neither a failed write nor a crash after that commit keeps it from them.
 */
import { randomUUID } from 'node:crypto'
import { BoundedMap } from '@sluice/kit'
import { actionRecord, type Events, type Store } from '@sluice/sdk'
import * as v from 'valibot'
import { addressSchema } from './codes.ts'

/** How long a change is remembered, for a command or request that is repeated. */
const KEPT_MS = 24 * 3_600_000
const KEPT_MAX = 200
/** The most changes that this process remembers to have announced. */
const ANNOUNCED_MAX = 1000
const PAGE_ROWS = 1000

const otherSchema = v.object({ account: v.string(), name: v.exactOptional(v.string()), to: v.exactOptional(addressSchema) })

export const linkChangeSchema = v.object({
  /** The command that made the change, or a random id. */
  id: v.string(),
  kind: v.picklist(['people_linked', 'people_confirmed', 'people_unlinked']),
  account: v.string(),
  /** The actor in the audit log. */
  by: v.string(),
  atMs: v.number(),
  /** The accounts with which it was linked, that it confirmed, or from which it was separated. */
  others: v.array(otherSchema),
  /** The account itself, where another one made the change, so that it has to learn of it. */
  own: v.exactOptional(otherSchema),
})
export type LinkChange = v.InferOutput<typeof linkChangeSchema>

/** Who makes a change. `command` makes a repeat of the same command harmless; a request is repeated by the same actor for the same account. */
export type Changing = Pick<LinkChange, 'account' | 'by'> & {
  readonly command?: string | undefined
  /** Whether another account asks for the change. */
  readonly isByOther?: boolean | undefined
}

const COMMAND = 'inbox:'
/** The id of the changes of the command that is this message of the inbox. */
export const commandId = (number: number): string => `${COMMAND}${number}`

/** Whether no command is carried out again to tell the other accounts of the change. */
export const isByRequest = ({ id }: Pick<LinkChange, 'id'>): boolean => !id.startsWith(COMMAND)

/** Returns the change that a repeated command or request has made before. */
export const madeBefore = (changes: readonly LinkChange[], kind: LinkChange['kind'], { account, by, command }: Changing) =>
  changes.find((one) =>
    command === undefined ? isByRequest(one) && one.kind === kind && one.account === account && one.by === by : one.id === command,
  )

export const newChange = (
  kind: LinkChange['kind'],
  { account, by, command = randomUUID() }: Changing,
  { others, atMs, own }: Pick<LinkChange, 'others' | 'atMs' | 'own'>,
): LinkChange => ({
  id: command,
  kind,
  account,
  by,
  atMs,
  others: others.map(toldAccount),
  ...(own && { own: toldAccount(own) }),
})

const toldAccount = ({ account, name, to }: LinkChange['others'][number]): LinkChange['others'][number] => ({
  account,
  ...(name !== undefined && { name }),
  ...(to && { to }),
})

/** Whether a change is still remembered. */
export const isRemembered = ({ atMs }: Pick<LinkChange, 'atMs'>, nowMs: number): boolean => Math.abs(nowMs - atMs) <= KEPT_MS

/** Whether a change names one of the accounts. */
export const namesOne = ({ account, others, own }: LinkChange, isOne: (account: string) => boolean): boolean =>
  isOne(account) || others.some((one) => isOne(one.account)) || (own !== undefined && isOne(own.account))

/** Returns the remembered changes and a new one. */
export const withChange = (changes: readonly LinkChange[], change: LinkChange): LinkChange[] => [...changes, change].slice(-KEPT_MAX)

interface AnnouncerOptions {
  readonly store: Pick<Store, 'sops'>
  readonly events: Pick<Events, 'emit'>
}

const EVENTS = { people_linked: 'linked', people_confirmed: 'confirmed', people_unlinked: 'unlinked' } as const

/** Writes changes to the audit log, and tells operators of them. */
export class LinkAnnouncer {
  readonly #options: AnnouncerOptions
  readonly #announced = new BoundedMap<string, true>(ANNOUNCED_MAX)
  /** The changes whose record may be in the audit log. */
  readonly #tried = new BoundedMap<string, true>(ANNOUNCED_MAX)

  constructor(options: AnnouncerOptions) {
    this.#options = options
  }

  /** Resolves once the change is in the audit log. Only the first call for a change writes to it. `isRepeat`: another process may have done so. */
  async announce(change: LinkChange, isRepeat: boolean): Promise<void> {
    const { id, kind, account, by, atMs, others } = change
    if (this.#announced.get(id)) return
    const mayBeRecorded = isRepeat || this.#tried.get(id) === true
    this.#tried.set(id, true)
    const accounts = others.map((one) => one.account)
    const [other = ''] = accounts
    const detail = kind === 'people_unlinked' ? { account, others: accounts } : { account, other }
    if (!(mayBeRecorded && (await this.#isRecorded(change))))
      await this.#options.store.sops.record([actionRecord({ kind, atMs, by, detail })])
    this.#announced.set(id, true)
    this.#options.events.emit({ type: 'people_changed', change: EVENTS[kind], account, others: accounts })
  }

  async #isRecorded({ kind, account, by, atMs }: LinkChange): Promise<boolean> {
    for (let after = 0; ; ) {
      const page = await this.#options.store.sops.audit({ limit: PAGE_ROWS, after })
      if (page.some((row) => row.kind === kind && row.atMs === atMs && row.by === by && row.detail?.account === account)) return true
      after = page.at(-1)?.number ?? after
      if (page.length < PAGE_ROWS) return false
    }
  }
}
