import type { Channel, OfferedCommand } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { CommandMenus } from './command-menus.ts'

const ticks = async () => {
  for (let tick = 0; tick < 20; tick++) await new Promise((resolve) => setImmediate(resolve))
}

function arrange(write: (commands: readonly OfferedCommand[]) => Promise<void> = async () => {}) {
  const clock = testClock()
  const stopping = new AbortController()
  const menus = new CommandMenus({ clock, log: testHost({ clock }).log, stopping: stopping.signal })
  const written: (readonly OfferedCommand[])[] = []
  const channel = {
    name: 'x',
    async offerCommands(commands: readonly OfferedCommand[]) {
      written.push(commands)
      await write(commands)
    },
  } as unknown as Channel
  return { clock, stopping, menus, written, channel }
}

test('writes the menu once, again with other words, and removes it with the channel', async () => {
  const { menus, written, channel } = arrange()
  const plain = { name: 'y' } as Channel
  menus.set([channel, plain], {})
  menus.set([channel, plain], {})
  await ticks()
  expect(written).toHaveLength(1)
  expect(written[0]).toContainEqual({ name: 'stop', description: 'ends the running turn' })
  expect(written[0]).toContainEqual({ name: 'compact', description: 'replaces the earlier messages by a summary', takesWords: true })
  menus.set([channel, plain], { command_stop: 'hält an' })
  await ticks()
  expect(written[1]).toContainEqual({ name: 'stop', description: 'hält an' })
  menus.set([plain], {})
  menus.set([plain], {})
  await ticks()
  expect(written.slice(2)).toEqual([[]])
})

test('tries again after a failure, and no more once the daemon stops', async () => {
  let isAway = true
  const { clock, stopping, menus, written, channel } = arrange(() => (isAway ? Promise.reject(new Error('away')) : Promise.resolve()))
  menus.set([channel], {})
  await ticks()
  await clock.advance(60_000)
  await ticks()
  expect(written.length).toBeGreaterThan(1)
  stopping.abort()
  isAway = false
  const before = written.length
  await clock.advance(3_600_000)
  await ticks()
  expect(written).toHaveLength(before)
})
