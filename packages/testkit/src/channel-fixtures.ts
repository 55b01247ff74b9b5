/** Loads the recorded payloads of a channel from its `fixtures` folder. */
import { readdirSync, readFileSync } from 'node:fs'
import * as v from 'valibot'
import type { ChannelFixture } from './channel-subject.ts'

const fileSchema = v.strictObject({
  headers: v.optional(v.record(v.string(), v.string()), {}),
  /** A string is the body itself; any other value is the body's JSON. */
  body: v.unknown(),
  expect: v.array(v.custom<ChannelFixture['expect'][number]>((value) => typeof value === 'object' && value !== null)),
})

/**
 * Loads every `<case>.json` of the folder, sorted by name. Call it with `new URL('../fixtures/', import.meta.url)`.
 * Throws if a file is not JSON or has unknown members.
 */
export const loadFixtures = (folder: URL): ChannelFixture[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const { headers, body, expect } = v.parse(fileSchema, JSON.parse(readFileSync(new URL(file, folder), 'utf8')))
      return { name: file.slice(0, -'.json'.length), headers, body: typeof body === 'string' ? body : JSON.stringify(body), expect }
    })
