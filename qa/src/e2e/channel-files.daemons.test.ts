/** Files of replies in every channel that sends files: within the limits, beyond the size, and beyond the number. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { truncate, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { Channel } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHANNELS } from '../channels.ts'
import { type ChannelKind, countOf, KIND_NAMES, KindDaemon } from '../daemons/kind-daemon.ts'

let daemon: KindDaemon
/** The next answer of the model. */
let reply = ''
/** Whether the model has made the call after which the files count as written by its turn. */
let hasWritten = false
const answer = () => {
  hasWritten = !hasWritten
  return hasWritten ? { toolCalls: [{ name: 'file_write', input: { path: 'log.txt', content: reply } }] } : { text: reply }
}
beforeAll(async () => {
  daemon = await KindDaemon.start({ answer })
}, 120_000)
afterAll(() => daemon?.stop())

const LATER = new Date('2100-01-01')

/** Builds the channel as the daemon does, to read its limits. */
function limitsOf({ name, section }: ChannelKind): Channel['limits'] {
  const found = CHANNELS.find((channel) => channel.name === name)
  const [channel] = found?.feature.build(testHost(), v.parse(found.feature.section?.schema ?? v.any(), section)).channels ?? []
  if (!channel) throw new Error(`The section of the fake of ${name} builds no channel.`)
  return channel.limits
}

/** Makes a file in the workspace of the agent, without taking its room on the disk; it counts as changed later than any call. */
async function fileOf(name: string, size: number): Promise<string> {
  const folder = join(daemon.dataDir, 'workspace')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, name), 'A')
  if (size > 1) await truncate(join(folder, name), size)
  await utimes(join(folder, name), LATER, LATER)
  return `[DOCUMENT:${name}]`
}

describe.each(KIND_NAMES)('%s', (name) => {
  test('sends the files of a reply once, and says which it cannot send', async ({ skip }) => {
    const kind = daemon.kind(name)
    const { attachments } = limitsOf(kind)
    if (!attachments) return skip('The channel sends no files.')
    const { files } = kind
    if (!files) return skip('The crash kind of the channel does not tell which files the platform accepted.')
    const { count, bytesMax } = attachments
    const ask = async (text: string, words: string): Promise<void> => {
      reply = `${words}\n${text}`
      await daemon.write(kind, words)
      await daemon.until(() => countOf(kind, words) > 0)
      await daemon.idle()
      expect(countOf(kind, words)).toBe(1)
    }

    const before = files().length
    await ask(await fileOf(`${name}-small.txt`, 1), `small of ${name}`)
    expect(files().slice(before)).toEqual([{ name: `${name}-small.txt`, size: 1 }])

    await ask(await fileOf(`${name}-large.txt`, bytesMax + 1), `large of ${name}`)
    expect(files()).toHaveLength(before + 1)
    expect(kind.delivered().filter((text) => text.includes('not attached') && text.includes(`${name}-large.txt`))).toHaveLength(1)

    const many = await Promise.all(Array.from({ length: count + 1 }, (_, index) => fileOf(`${name}-${index}.txt`, 2)))
    await ask(many.join('\n'), `many of ${name}`)
    expect(files().slice(before + 1)).toEqual(Array.from({ length: count }, (_, index) => ({ name: `${name}-${index}.txt`, size: 2 })))
    expect(kind.delivered().filter((text) => text.includes(`[DOCUMENT:${name}-${count}.txt]`))).toHaveLength(1)
  }, 180_000)
})
