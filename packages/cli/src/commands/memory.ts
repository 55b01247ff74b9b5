/** `sluice memory`: what the agent remembers and for whom, shown, forgotten and given to other owners by the operator. */
import { AppError, type MemoryEntry, type MemoryStore, oneLine, SHARED_MEMORIES, type Store, UNOWNED_MEMORIES } from '@sluice/sdk'
import type { CliContext } from '../context.ts'
import { printBlock, printFields, time } from '../deliveries/show.ts'
import { TEXT_CHARS_MAX } from '../deliveries/widths.ts'
import { withStore } from '../with-store.ts'

const PAGE = 500

/** The two owners that are no client, as an operator names them. */
const WORDS: Readonly<Record<string, string>> = { shared: SHARED_MEMORIES, unowned: UNOWNED_MEMORIES }

const CLIENT = /^(?:cli|local|(?:device|sop):.+|channel:[^/]+\/[^/]+\/[^/]+)$/s

export const list = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json } = context
    const entries = await all(store.memory, ownerOption(context, 'owner'))
    if (json) out.json(entries.map(shown))
    else if (entries.length === 0) out.print('nothing is remembered')
    else
      out.table(
        ['owner', 'key', 'category', 'updated', 'content'],
        entries.map((entry) => [
          oneLine(shown(entry).owner, TEXT_CHARS_MAX),
          oneLine(entry.key, TEXT_CHARS_MAX),
          oneLine(entry.category, TEXT_CHARS_MAX),
          time(entry.updatedAtMs) ?? '',
          oneLine(entry.content, TEXT_CHARS_MAX),
        ]),
      )
    return 0
  })

export const show = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const entry = await one(context, store.memory)
    const { content, ...fields } = shown(entry)
    if (context.json) context.out.json({ ...fields, content })
    else {
      printFields(context.out, fields)
      printBlock(context.out, 'content', content)
    }
    return 0
  })

export const forget = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store: { memory } }) => {
    const { out, json, args, options } = context
    const owner = ownerOption(context, 'owner')
    const isAll = options.all === true
    if (isAll === (args[0] !== undefined) || (isAll && owner === undefined))
      throw new AppError('invalid_request', "name one key, or an owner with --all: sluice memory forget --owner 'device:…' --all")
    const entries = isAll ? await all(memory, owner) : [await one(context, memory)]
    for (const entry of entries) await memory.delete(entry.owner, entry.key)
    if (json) out.json({ forgotten: entries.length })
    else out.print(`forgot ${counted(entries.length)}`)
    return 0
  })

export const assign = (context: CliContext): Promise<number> =>
  withStore(context, async ({ store }) => {
    const { out, json, args, options } = context
    if ((options.shared === true) === (args[0] !== undefined))
      throw new AppError('invalid_request', 'name the new owner, or --shared to let every client recall them')
    const to = options.shared === true ? SHARED_MEMORIES : await existing(store, ownerNamed('the owner', args[0] ?? ''))
    const from = ownerOption(context, 'from') ?? UNOWNED_MEMORIES
    const key = typeof options.key === 'string' ? options.key : undefined
    const given = await store.memory.assign({ from, to, ...(key !== undefined && { key }) })
    const left = (await all(store.memory, from)).filter((entry) => key === undefined || entry.key === key).length
    if (json) out.json({ assigned: given, left })
    else out.print(`gave ${counted(given)} to ${wordFor(to)}`)
    if (left > 0) out.warn(`${counted(left)} stayed with ${wordFor(from)}, because ${wordFor(to)} uses the same key already`)
    return 0
  })

/** The entry a command line names: by its key alone if one owner uses that key. */
async function one(context: CliContext, memory: MemoryStore): Promise<MemoryEntry> {
  const [key = ''] = context.args
  const found = (await all(memory, ownerOption(context, 'owner'))).filter((entry) => entry.key === key)
  const [first] = found
  if (!first) throw new AppError('not_found', `nothing is remembered under '${key}'; 'sluice memory list' lists the keys`)
  if (found.length > 1) {
    const owners = found.map(({ owner }) => wordFor(owner)).join(', ')
    throw new AppError('invalid_request', `'${key}' is remembered for ${owners}: add --owner`)
  }
  return first
}

async function all(memory: MemoryStore, owner: string | undefined): Promise<MemoryEntry[]> {
  const entries: MemoryEntry[] = []
  for (;;) {
    const after = entries.at(-1)
    const page = await memory.list({ limit: PAGE, ...(owner !== undefined && { owner }), ...(after && { after }) })
    entries.push(...page)
    if (page.length < PAGE) return entries
  }
}

function ownerOption({ options }: CliContext, name: 'owner' | 'from'): string | undefined {
  const given = options[name]
  return typeof given === 'string' ? ownerNamed(`--${name}`, given) : undefined
}

function ownerNamed(what: string, name: string): string {
  const owner = Object.hasOwn(WORDS, name) ? WORDS[name] : name
  if (owner !== undefined && (owner !== name || CLIENT.test(name))) return owner
  const forms = 'device:<id>, channel:<channel>/<account>/<sender>, sop:<name>, cli, local, shared or unowned'
  throw new AppError('invalid_request', `${what} must be ${forms}; got '${name}'`)
}

/** Refuses a device that is not paired: memories given to it could be recalled by no client. */
async function existing({ devices }: Store, owner: string): Promise<string> {
  const id = owner.startsWith('device:') ? owner.slice('device:'.length) : undefined
  if (id === undefined || (await devices.list()).some((device) => device.id === id)) return owner
  throw new AppError('not_found', `no device '${id}'; 'sluice pair list' lists them`)
}

const wordFor = (owner: string): string => Object.entries(WORDS).find(([, value]) => value === owner)?.[0] ?? owner

const counted = (count: number): string => (count === 1 ? '1 memory' : `${count} memories`)

const shown = ({ owner, key, category, content, updatedAtMs }: MemoryEntry) => ({
  owner: wordFor(owner),
  key,
  category,
  updated_at: time(updatedAtMs),
  content,
})
