/** `/api/memories`: the memories that the agent keeps for the calling device. No other device can read or delete them. */

import { isoTime } from '@sluice/kit'
import type { Runtime } from '@sluice/runtime'
import { AppError, defineRoute, type MemoryEntry, type Route } from '@sluice/sdk'
import * as v from 'valibot'
import { personOf } from '../identity.ts'
import { wholeText } from './query.ts'

const PAGE_MAX = 200

const memorySchema = v.object({ key: v.string(), category: v.string(), content: v.string(), updated_at: v.string() })

const unknownMemory = (): AppError => new AppError('not_found', 'Nothing is remembered under this key')

const shown = ({ key, category, content, updatedAtMs }: MemoryEntry) => ({ key, category, content, updated_at: isoTime(updatedAtMs) })

export function memoryRoutes({ store: { memory } }: Runtime): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/memories',
      summary: 'The memories that the agent keeps for this device, sorted by key',
      auth: 'client',
      query: v.object({ limit: wholeText(1, PAGE_MAX, 50), after: v.optional(v.string()) }),
      answers: {
        200: {
          description: 'A page. Pass the last `key` as `after` to get the next page',
          schema: v.object({ memories: v.array(memorySchema) }),
        },
      },
      async handle({ device, query: { limit, after } }) {
        const owner = personOf(device)
        const entries = await memory.list({ owner, limit, ...(after !== undefined && { after: { owner, key: after } }) })
        return { memories: entries.map(shown) }
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/memories/:key',
      summary: 'One memory of this device',
      auth: 'client',
      answers: { 200: { description: 'The memory', schema: memorySchema } },
      async handle({ device, params: { key = '' } }) {
        const entry = await memory.get(personOf(device), key)
        if (!entry) throw unknownMemory()
        return shown(entry)
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/memories/:key',
      summary: 'Delete one memory of this device',
      auth: 'client',
      answers: { 200: { description: 'Deleted', schema: v.object({ deleted: v.literal(true), key: v.string() }) } },
      async handle({ device, params: { key = '' } }) {
        if (!(await memory.delete(personOf(device), key))) throw unknownMemory()
        return { deleted: true, key }
      },
    }),
  ]
}
