/** Starts the kinds of messages of a run: one for each channel with a crash kind, and the generic `POST /webhook`. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isInProfile } from '@sluice/sdk'
import type { CrashKind, WrittenMessage } from '@sluice/testkit/crash-kind'
import { Link } from '@sluice/testkit/link'
import { CHANNELS } from '../channels.ts'
import { ROOT } from '../daemons/bundle.ts'
import { sectionToml } from '../daemons/section-toml.ts'
import type { Message } from './history.ts'
import type { Kind } from './kind.ts'
import { textOf } from './marks.ts'
import { postKind } from './post-kind.ts'

/** What `POST /webhook` is called among the channels. */
const POST = 'post'
/** The names of all kinds. */
export const KIND_NAMES: readonly string[] = [POST, ...CHANNELS.flatMap(({ name, testing }) => (testing.crashKind ? [name] : []))]

/** The end of the name of a bundle that has the features of a profile and the store on PostgreSQL. */
export const WITH_POSTGRES = '-postgres'

/** Returns the kinds whose channels are in the bundle of a profile. A bundle that is not of a profile of this folder has all of them. */
export function kindNamesOf(profile: string): readonly string[] {
  const base = profile.endsWith(WITH_POSTGRES) ? profile.slice(0, -WITH_POSTGRES.length) : profile
  if (!existsSync(join(ROOT, 'profiles', `${base}.ts`))) return KIND_NAMES
  const missing = CHANNELS.flatMap(({ name, row }) => (isInProfile(row, base) ? [] : [name]))
  return KIND_NAMES.filter((name) => !missing.includes(name))
}

export interface KindsOptions {
  /** The names of the kinds. Default: all. */
  readonly only?: readonly string[]
  /** Whether each channel's platform is behind a link of its own. Default: false. */
  readonly isLinked?: boolean
  /** The number of senders of each kind. Senders that the kind does not name get the next numbers. Default: the number that it names. */
  readonly senders?: number
}

export async function startKinds({ only = KIND_NAMES, isLinked = false, senders }: KindsOptions = {}): Promise<readonly [Kind, ...Kind[]]> {
  const sendersOf = (kind: Pick<Kind, 'senders'>): Kind['senders'] =>
    senders === undefined ? kind.senders : extended(kind.senders, senders)
  const channels = CHANNELS.filter(({ name }) => only.includes(name)).map(async ({ name, testing: { crashKind } }) => {
    if (!crashKind) return []
    const link = isLinked ? new Link() : undefined
    const kind = await (link ? link.through(crashKind) : crashKind())
    return [{ ...kindOf(name, { ...kind, senders: sendersOf(kind) }), ...(link && { link }) }]
  })
  const post = postKind()
  const posts = only.includes(POST) ? [{ ...post, senders: sendersOf(post) }] : []
  const [first, ...rest] = [...posts, ...(await Promise.all(channels)).flat()]
  if (!first) throw new Error(`No kind of messages has one of these names: ${only.join(', ')}.`)
  return [first, ...rest]
}

/** Returns `count` senders. Throws unless the last given one ends with a number from which to count on. */
function extended([first, ...rest]: Kind['senders'], count: number): Kind['senders'] {
  const last = rest.at(-1) ?? first
  const [digits] = /\d+$/.exec(last) ?? []
  if (digits === undefined) throw new Error(`The sender ${last} does not end with a number.`)
  const head = last.slice(0, -digits.length)
  const next = (at: number): string => head + String(BigInt(digits) + BigInt(at + 1)).padStart(digits.length, '0')
  return [first, ...rest, ...Array.from({ length: Math.max(0, count - rest.length - 1) }, (_, at) => next(at))]
}

/** The kind of a channel, whose messages have the texts of the run. */
function kindOf(name: string, { fake, section, entries, batchMax = 1, isPulled = false, write, request, ...kind }: CrashKind): Kind {
  return {
    ...kind,
    name,
    config: sectionToml(name, section, entries ?? kind.senders),
    batchMax,
    isPulled,
    write: (draft) => ({ ...draft, kind: name, id: write({ ...draft, text: textOf(draft) }), ...(isPulled && { isPulled }) }),
    ...(request && {
      request(messages) {
        const [first, ...rest] = messages.map(written)
        if (!first) throw new Error('A request carries at least one message; got none.')
        return request([first, ...rest])
      },
    }),
    provider: fake,
  }
}

const written = (message: Message): WrittenMessage => ({
  mark: message.mark,
  sender: message.sender,
  id: message.id,
  text: textOf(message),
})
