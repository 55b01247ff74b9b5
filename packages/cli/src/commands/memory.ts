/** `sluice memory`: lists the memories of the agent, removes them, and gives them to another owner. */
import { AppError, type MemoryEntry, type MemoryStore, oneLine, SHARED_MEMORIES, type Store, UNOWNED_MEMORIES } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { formatTime, printBlock, printFields, TEXT_CHARS_MAX } from '../print-details.ts'
import { withStore } from '../with-store.ts'

const PAGE = 500

/** The two owners that are not clients, by their names on the command line. */
const SPECIAL_OWNERS: Readonly<Record<string, string>> = { shared: SHARED_MEMORIES, unowned: UNOWNED_MEMORIES }
/** The owners that are clients. */
const CLIENT = /^(?:cli|local|(?:device|sop):.+|channel:[^/]+\/[^/]+\/[^/]+)$/s
const OWNER_FORMS = 'device:<id>, channel:<channel>/<account>/<sender>, sop:<name>, cli, local, shared or unowned'

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ memory }) => {
    const { out, json } = context
    const entries = await readAll(memory, ownerOption(context, 'owner'))
    if (json) out.json(entries.map(shown))
    else if (entries.length === 0) out.print('no memories')
    else
      out.table(
        ['owner', 'key', 'category', 'updated', 'content'],
        entries.map((entry) => [
          oneLine(ownerName(entry.owner), TEXT_CHARS_MAX),
          oneLine(entry.key, TEXT_CHARS_MAX),
          oneLine(entry.category, TEXT_CHARS_MAX),
          formatTime(entry.updatedAtMs) ?? '',
          oneLine(entry.content, TEXT_CHARS_MAX),
        ]),
      )
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ memory }) => {
    const { content, ...fields } = shown(await findEntry(context, memory))
    if (context.json) context.out.json({ ...fields, content })
    else {
      printFields(context.out, fields)
      printBlock(context.out, 'content', content)
    }
    return 0
  })

export const forget = (context: CliContext): Promise<number> =>
  withStore(context, async ({ memory }) => {
    const { out, json, args, options } = context
    const owner = ownerOption(context, 'owner')
    const isAll = options.all === true
    if (isAll === (args[0] !== undefined) || (isAll && owner === undefined))
      throw new AppError('invalid_request', "name one key, or an owner with --all: sluice memory forget --owner 'device:…' --all")
    const entries = isAll ? await readAll(memory, owner) : [await findEntry(context, memory)]
    for (const entry of entries) await memory.delete(entry.owner, entry.key)
    if (json) out.json({ forgotten: entries.length })
    else out.print(`forgot ${memories(entries.length)}`)
    return 0
  })

export const assign = (context: CliContext): Promise<number> =>
  withStore(context, async (store) => {
    const { out, json, args, options } = context
    if ((options.shared === true) === (args[0] !== undefined))
      throw new AppError('invalid_request', 'name the new owner, or --shared to let every client recall them')
    const to = options.shared === true ? SHARED_MEMORIES : await requirePaired(store, parseOwner('the owner', args[0] ?? ''))
    const from = ownerOption(context, 'from') ?? UNOWNED_MEMORIES
    const key = typeof options.key === 'string' ? options.key : undefined
    const assigned = await store.memory.assign({ from, to, ...(key !== undefined && { key }) })
    const left = (await readAll(store.memory, from)).filter((entry) => key === undefined || entry.key === key).length
    if (json) out.json({ assigned, left })
    else out.print(`gave ${memories(assigned)} to ${ownerName(to)}`)
    if (left > 0) out.warn(`${memories(left)} stayed with ${ownerName(from)}, because ${ownerName(to)} uses the same key already`)
    return 0
  })

/** Finds the entry with the key of the command line. Throws `invalid_request` if several owners use the key and none is named. */
async function findEntry(context: CliContext, memory: MemoryStore): Promise<MemoryEntry> {
  const [key = ''] = context.args
  const found = (await readAll(memory, ownerOption(context, 'owner'))).filter((entry) => entry.key === key)
  const [first] = found
  if (!first) throw new AppError('not_found', `there is no memory '${key}'; 'sluice memory list' lists the keys`)
  if (found.length > 1) {
    const owners = found.map(({ owner }) => ownerName(owner)).join(', ')
    throw new AppError('invalid_request', `'${key}' is a memory of ${owners}: add --owner`)
  }
  return first
}

/** Reads every entry, or every entry of one owner, page by page. */
async function readAll(memory: MemoryStore, owner: string | undefined): Promise<MemoryEntry[]> {
  const entries: MemoryEntry[] = []
  for (;;) {
    const after = entries.at(-1)
    const page = await memory.list({ limit: PAGE, ...(owner !== undefined && { owner }), ...(after && { after }) })
    entries.push(...page)
    if (page.length < PAGE) return entries
  }
}

function ownerOption({ options }: CliContext, name: 'owner' | 'from'): string | undefined {
  const value = options[name]
  return typeof value === 'string' ? parseOwner(`--${name}`, value) : undefined
}

/** Returns the stored form of an owner. Throws `invalid_request`, naming `argument`, for a text that cannot be an owner. */
function parseOwner(argument: string, name: string): string {
  const owner = Object.hasOwn(SPECIAL_OWNERS, name) ? SPECIAL_OWNERS[name] : undefined
  if (owner !== undefined) return owner
  if (CLIENT.test(name)) return name
  throw new AppError('invalid_request', `${argument} must be ${OWNER_FORMS}; got '${name}'`)
}

/** Throws `not_found` for a device that is not paired: no client could recall memories given to it. */
async function requirePaired({ devices }: Store, owner: string): Promise<string> {
  const id = owner.startsWith('device:') ? owner.slice('device:'.length) : undefined
  if (id === undefined || (await devices.list()).some((device) => device.id === id)) return owner
  throw new AppError('not_found', `no device '${id}'; 'sluice pair list' lists them`)
}

/** Returns the name of an owner on the command line. */
const ownerName = (owner: string): string => Object.entries(SPECIAL_OWNERS).find(([, value]) => value === owner)?.[0] ?? owner

const memories = (count: number): string => (count === 1 ? '1 memory' : `${count} memories`)

/** The JSON form of an entry. */
const shown = ({ owner, key, category, content, updatedAtMs }: MemoryEntry) => ({
  owner: ownerName(owner),
  key,
  category,
  updated_at: formatTime(updatedAtMs),
  content,
})
