/** `/api/memories`: the memories of the agent for the calling device; operators read, remove and move the memories of every owner. */

import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type MemoryEntry, type MemoryStore, type Role, type Route, UNOWNED_MEMORIES } from '@sluice/sdk'
import * as v from 'valibot'
import { ownerName, parseOwner, requirePaired } from '../answers/memory-owners.ts'
import { personOf } from '../auth/identity.ts'
import { recordAction } from '../request/record-action.ts'
import { cursorOf, filterText, flag, pageOf, readCursor, wholeText } from './query.ts'

const PAGE_MAX = 500
const OWNERS_MAX = 1000

const memorySchema = v.object({
  owner: v.pipe(
    v.string(),
    v.description(
      '`device:<id>`, `channel:<channel>/<account>/<sender>`, `sop:<name>`, `cli`, `local`, `shared` or `unowned`; a client of another agent than `main` begins with `agent:<name>/`',
    ),
  ),
  key: v.string(),
  category: v.string(),
  content: v.string(),
  untrusted: v.pipe(v.boolean(), v.description('Whether text of others may have led to it; the model then gets it as data')),
  updated_at: v.string(),
})

/** One memory, as the API answers it. */
export type Memory = v.InferOutput<typeof memorySchema>

const pageSchema = v.object({ memories: v.array(memorySchema), next: v.nullable(v.string()) })
/** The answer of `GET /api/memories`. */
export type MemoriesPage = v.InferOutput<typeof pageSchema>

const movedSchema = v.object({ from: v.string(), to: v.string(), assigned: v.number(), left: v.number() })
/** The answer of `POST /api/memories/assign`. */
export type MemoriesMoved = v.InferOutput<typeof movedSchema>

const ownerQuery = v.exactOptional(
  v.pipe(v.string(), v.minLength(1), v.description('The owner; default: this device. Only an operator names another owner')),
)

const listQuery = v.object({
  limit: wholeText(1, PAGE_MAX, 50),
  after: v.optional(v.string()),
  cursor: filterText,
  owner: ownerQuery,
  all: v.exactOptional(v.pipe(flag, v.description('True: the memories of every owner; only for an operator'))),
})

const unknownMemory = (): AppError => new AppError('not_found', 'Nothing is remembered under this key')
const forbidden = (): AppError => new AppError('forbidden', 'Only an operator reads or removes the memories of others.')

interface Caller {
  readonly device: string | null
  readonly role: Role | null
}

const shown = ({ owner, key, category, content, untrusted, updatedAtMs }: MemoryEntry) => ({
  owner: ownerName(owner),
  key,
  category,
  content,
  untrusted,
  updated_at: isoTime(updatedAtMs),
})

/** Resolves to the stored owner that a request is about; that of its person, where accounts are linked. Throws `forbidden` if a client names another owner than itself. */
async function ownerFor({ people }: Pick<Runtime, 'people'>, { device, role }: Caller, owner: string | undefined): Promise<string> {
  const own = personOf(device)
  await people.refresh()
  const [person] = people.personOf(own) ?? []
  if (owner === undefined || owner === own) return person?.account ?? own
  if (role !== 'operator') throw forbidden()
  return parseOwner('owner', owner)
}

export const memoryRoutes = (runtime: Runtime, { store } = runtime): Route[] => [
  listRoute(runtime),
  forgetAllRoute(runtime),
  assignRoute(runtime),
  ownersRoute(store.memory),
  memoryRoute(runtime),
  forgetRoute(runtime),
]

const listRoute = (runtime: Runtime, { memory } = runtime.store): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/memories',
    summary:
      'The memories that the agent keeps for this device, sorted by key. An operator may list the memories of another owner, or all, sorted by owner and key',
    auth: 'client',
    query: listQuery,
    answers: {
      200: {
        description:
          'A page. Pass `next` as `cursor` to get the next page; null is the end. `after` names the last `key` of a page instead',
        schema: pageSchema,
      },
    },
    async handle({ device, role, query: { limit, all, ...query } }) {
      if (all === 'true' && role !== 'operator') throw forbidden()
      const owner = all === 'true' ? undefined : await ownerFor(runtime, { device, role }, query.owner)
      const after = placeOf(query, owner)
      const rows = await memory.list({ limit: limit + 1, ...(owner !== undefined && { owner }), ...(after && { after }) })
      const { page, next } = pageOf(rows, limit, (last) => cursorOf([last.owner, last.key]))
      return { memories: page.map(shown), next }
    },
  })

/** Returns the memory that the page begins after; undefined for the first page. */
function placeOf({ after, cursor }: Pick<v.InferOutput<typeof listQuery>, 'after' | 'cursor'>, owner: string | undefined) {
  if (cursor !== undefined) {
    const [ownerBefore, key] = readCursor(cursor, v.tuple([v.string(), v.string()]))
    return { owner: ownerBefore, key }
  }
  return after !== undefined && owner !== undefined ? { owner, key: after } : undefined
}

const memoryRoute = (runtime: Runtime, { memory } = runtime.store): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/memories/:key',
    summary: 'One memory of this device; an operator may name another owner',
    auth: 'client',
    query: v.object({ owner: ownerQuery }),
    answers: { 200: { description: 'The memory', schema: memorySchema } },
    async handle({ device, role, params: { key = '' }, query }) {
      const entry = await memory.get(await ownerFor(runtime, { device, role }, query.owner), key)
      if (!entry) throw unknownMemory()
      return shown(entry)
    },
  })

const forgetRoute = (runtime: Runtime): Route =>
  defineRoute({
    method: 'DELETE',
    path: '/api/memories/:key',
    summary: 'Delete one memory of this device; an operator may name another owner',
    auth: 'client',
    query: v.object({ owner: ownerQuery }),
    answers: { 200: { description: 'Deleted', schema: v.object({ deleted: v.literal(true), key: v.string() }) } },
    async handle({ by, device, role, params: { key = '' }, query }) {
      const owner = await ownerFor(runtime, { device, role }, query.owner)
      if (!(await runtime.store.memory.delete(owner, key))) throw unknownMemory()
      if (query.owner !== undefined) await recordAction(runtime, 'memories_deleted', by, { owner: ownerName(owner), deleted: 1 })
      return { deleted: true, key }
    },
  })

const forgetAllRoute = (runtime: Runtime, { memory } = runtime.store): Route =>
  defineRoute({
    method: 'DELETE',
    path: '/api/memories',
    summary: 'Delete every memory of one owner',
    auth: 'operator',
    query: v.object({ owner: v.pipe(v.string(), v.minLength(1)) }),
    answers: {
      200: { description: 'Deleted; `deleted` is the number of memories', schema: v.object({ deleted: v.number(), owner: v.string() }) },
    },
    async handle({ by, query }) {
      const owner = parseOwner('owner', query.owner)
      let deleted = 0
      for (;;) {
        const page = await memory.list({ limit: PAGE_MAX, owner })
        const done = await Promise.all(page.map(({ key }) => memory.delete(owner, key)))
        deleted += done.filter(Boolean).length
        if (page.length < PAGE_MAX) break
      }
      if (deleted > 0) await recordAction(runtime, 'memories_deleted', by, { owner: ownerName(owner), deleted })
      return { deleted, owner: ownerName(owner) }
    },
  })

const assignRoute = (runtime: Runtime, { store } = runtime): Route =>
  defineRoute({
    method: 'POST',
    path: '/api/memories/assign',
    summary: 'Give the memories of one owner to another; a memory stays if the new owner already uses its key',
    auth: 'operator',
    body: v.object({
      from: v.optional(v.pipe(v.string(), v.description('The present owner')), ownerName(UNOWNED_MEMORIES)),
      to: v.pipe(v.string(), v.description('The new owner; `shared` lets every client recall the memories')),
      key: v.exactOptional(v.pipe(v.string(), v.description('Only the memory with this key'))),
    }),
    answers: {
      200: {
        description: 'The number of memories that moved, and of those that stayed',
        schema: movedSchema,
      },
    },
    async handle({ by, body: { key, ...body } }) {
      const from = parseOwner('from', body.from)
      const to = await requirePaired(store, parseOwner('to', body.to))
      const assigned = await store.memory.assign({ from, to, ...(key !== undefined && { key }) })
      const moved = { from: ownerName(from), to: ownerName(to), assigned }
      if (assigned > 0) await recordAction(runtime, 'memories_assigned', by, moved)
      return { ...moved, left: await countOf(store.memory, from, key) }
    },
  })

/** Counts the memories of an owner, or only the one with the key. */
async function countOf(memory: MemoryStore, owner: string, key: string | undefined): Promise<number> {
  if (key === undefined) return memory.count(owner)
  return (await memory.get(owner, key)) ? 1 : 0
}

const ownersRoute = (memory: MemoryStore): Route =>
  defineRoute({
    method: 'GET',
    path: '/api/memory-owners',
    summary: 'The owners of memories, and how many each has',
    auth: 'operator',
    query: v.object({ limit: wholeText(1, OWNERS_MAX, OWNERS_MAX), cursor: filterText }),
    answers: {
      200: {
        description: 'A page, sorted by owner. Pass `next` as `cursor` to get the next page; null is the end',
        schema: v.object({ owners: v.array(v.object({ owner: v.string(), count: v.number() })), next: v.nullable(v.string()) }),
      },
    },
    async handle({ query: { limit, cursor } }) {
      const [after] = cursor === undefined ? [] : readCursor(cursor, v.tuple([v.string()]))
      const rows = await memory.owners({ limit: limit + 1, ...(after !== undefined && { after }) })
      const { page, next } = pageOf(rows, limit, ({ owner }) => cursorOf([owner]))
      return { owners: page.map(({ owner, count }) => ({ owner: ownerName(owner), count })), next }
    },
  })
