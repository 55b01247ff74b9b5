/** Reads the payloads of a channel from its `fixtures` folder. */
import { readdirSync, readFileSync } from 'node:fs'
import * as v from 'valibot'
import type { ChannelFixture } from './channel.ts'

const fileSchema = v.strictObject({
  headers: v.optional(v.record(v.string(), v.string()), {}),
  /** A text is taken as it is, anything else as the JSON it stands for. */
  body: v.unknown(),
  expect: v.array(v.custom<ChannelFixture['expect'][number]>((value) => typeof value === 'object' && value !== null)),
})

/** Every `<case>.json` of the folder, by name; call it with `new URL('../fixtures/', import.meta.url)`. */
export const loadFixtures = (folder: URL): ChannelFixture[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .sort()
    .map((file) => {
      const { headers, body, expect } = v.parse(fileSchema, JSON.parse(readFileSync(new URL(file, folder), 'utf8')))
      return { name: file.slice(0, -'.json'.length), headers, body: typeof body === 'string' ? body : JSON.stringify(body), expect }
    })
