/** Tests GPIO lines with the kernel's driver for simulated chips. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { glob, readFile, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type EdgeEvent, type EdgeWatch, openGpio } from '@sluice/hardware'
import { createGpioChip } from '@sluice/qa/vm/devices/gpio-chip'
import { type VmTestContext, vmCase } from '@sluice/qa/vm/vm-case'

const NAMES = { 4: 'GPIO4', 17: 'GPIO17' }
const chipWith = (label: string, lines = 32) => createGpioChip({ label, lines, names: NAMES })

/** Returns the number of ticks of the event loop so far. */
const ticks = () => performance.nodeTiming.uvMetricsInfo.loopCount

/** Removes the chip, as unplugging it does. */
const removeChip = async (path: string) => {
  for await (const file of glob('/sys/kernel/config/gpio-sim/*/bank0/chip_name'))
    if ((await readFile(file, 'utf8')).trim() === basename(path)) await writeFile(file.replace('bank0/chip_name', 'live'), '0')
}

/** Collects edges and waits for a number of them. */
const collectEdges = () => {
  const seen: EdgeEvent[] = []
  let notify = () => {}
  const watch: EdgeWatch = {
    edge: 'both',
    onEvent: (event) => {
      seen.push(event)
      notify()
    },
  }
  const atLeast = async (count: number) => {
    while (seen.length < count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      notify = resolve
      await promise
    }
  }
  return { seen, watch, atLeast }
}

export default vmCase({
  modules: ['gpio-sim'],
  tests: {
    'chips report label and size, lines report name, direction and holder': async ({ after }: VmTestContext) => {
      const chip = await chipWith('pinctrl-bcm2711', 58)
      const gpio = await openGpio()
      assert.deepEqual(
        (await gpio.chips()).find(({ path }) => path === chip.path),
        { path: chip.path, label: 'pinctrl-bcm2711', lines: 58 },
      )
      assert.deepEqual(await gpio.line(chip.path, 17), { offset: 17, name: 'GPIO17', isUsed: false, consumer: '', direction: 'input' })
      const lines = await gpio.request(chip.path, { offsets: [17], direction: 'output', consumer: 'the test' })
      after(() => lines.close())
      assert.deepEqual(await gpio.line(chip.path, 17), {
        offset: 17,
        name: 'GPIO17',
        isUsed: true,
        consumer: 'the test',
        direction: 'output',
      })
      await assert.rejects(gpio.line(chip.path, 58), { code: 'invalid_request' })
      await assert.rejects(gpio.line('/dev/gpiochip99', 0), { code: 'not_found' })
    },

    'several outputs are set at once and keep their levels': async ({ after }) => {
      const chip = await chipWith('outputs')
      const gpio = await openGpio()
      const lines = await gpio.request(chip.path, { offsets: [5, 4, 17], direction: 'output', consumer: 'x', levels: [1, 0, 1] })
      after(() => lines.close())
      assert.deepEqual([await chip.level(5), await chip.level(4), await chip.level(17)], [1, 0, 1])
      lines.write([0, 1, 1])
      assert.deepEqual([await chip.level(5), await chip.level(4), await chip.level(17)], [0, 1, 1])
      assert.deepEqual(lines.read(), [0, 1, 1])
    },

    'a held line is refused with the name of its holder': async () => {
      const chip = await chipWith('held')
      const gpio = await openGpio()
      const lines = await gpio.request(chip.path, { offsets: [4], direction: 'output', consumer: 'first' })
      const again = () => gpio.request(chip.path, { offsets: [17, 4], direction: 'input', consumer: 'second' })
      await assert.rejects(again(), { code: 'conflict', message: `Line 4 of ${chip.path} is in use by first` })
      assert.equal((await gpio.line(chip.path, 17)).isUsed, false)
      lines.close()
      ;(await again()).close()
      assert.throws(() => lines.write([1]), { code: 'unavailable' })
    },

    'inputs read their level and bias': async () => {
      const chip = await chipWith('inputs')
      const gpio = await openGpio()
      const plain = await gpio.request(chip.path, { offsets: [4], direction: 'input', consumer: 'x' })
      await chip.drive(4, 1)
      assert.deepEqual(plain.read(), [1])
      await chip.drive(4, 0)
      assert.deepEqual(plain.read(), [0])
      assert.throws(() => plain.write([1]), { code: 'invalid_request' })
      plain.close()
      const pulled = await gpio.request(chip.path, { offsets: [4], direction: 'input', bias: 'pull-up', consumer: 'x' })
      assert.deepEqual(pulled.read(), [1])
      pulled.close()
    },

    'reading a line as-is changes nothing': async () => {
      const chip = await chipWith('as it is')
      const gpio = await openGpio()
      await chip.drive(4, 1)
      const lines = await gpio.request(chip.path, { offsets: [4], direction: 'as-is', consumer: 'x' })
      assert.deepEqual(lines.read(), [1])
      assert.equal((await gpio.line(chip.path, 4)).direction, 'input')
      lines.close()
    },

    'edges arrive in order with their time, without polling': async ({ after }) => {
      const chip = await chipWith('edges')
      const gpio = await openGpio()
      const { seen, watch, atLeast } = collectEdges()
      const lines = await gpio.request(chip.path, { offsets: [4, 17], direction: 'input', consumer: 'x', watch })
      after(() => lines.close())
      // Polling would wake the event loop again and again.
      const before = ticks()
      await sleep(1000)
      assert.ok(ticks() - before < 20, `the event loop woke up ${ticks() - before} times without an edge`)
      for (const level of [1, 0, 1] as const) await chip.drive(17, level)
      await chip.drive(4, 1)
      await atLeast(4)
      assert.deepEqual(
        seen.map(({ offset, edge, sequence }) => [offset, edge, sequence]),
        [
          [17, 'rising', 1],
          [17, 'falling', 2],
          [17, 'rising', 3],
          [4, 'rising', 4],
        ],
      )
      assert.deepEqual(
        seen.map(({ atNs }) => atNs),
        seen.map(({ atNs }) => atNs).toSorted((a, b) => Number(a - b)),
      )
    },

    'only the requested edges arrive, and none after close': async () => {
      const chip = await chipWith('falling')
      const gpio = await openGpio()
      const { seen, watch, atLeast } = collectEdges()
      const lines = await gpio.request(chip.path, { offsets: [4], direction: 'input', consumer: 'x', watch: { ...watch, edge: 'falling' } })
      for (const level of [1, 0, 1, 0] as const) await chip.drive(4, level)
      await atLeast(2)
      assert.deepEqual(
        seen.map(({ edge }) => edge),
        ['falling', 'falling'],
      )
      lines.close()
      for (const level of [1, 0] as const) await chip.drive(4, level)
      await sleep(50)
      assert.equal(seen.length, 2)
    },

    'a removed chip is unavailable and its lines can be closed': async () => {
      const chip = await chipWith('fleeting')
      const gpio = await openGpio()
      const watch: EdgeWatch = { edge: 'both', onEvent: () => {} }
      const lines = await gpio.request(chip.path, { offsets: [4], direction: 'input', consumer: 'x', watch })
      await removeChip(chip.path)
      assert.throws(() => lines.read(), { code: 'unavailable' })
      lines.close()
      await assert.rejects(gpio.line(chip.path, 4), { code: 'not_found' })
    },

    'edges reach a worker thread while the main thread is blocked': async () => {
      const chip = await chipWith('worker')
      const source = `
        import { once } from 'node:events'
        import { parentPort } from 'node:worker_threads'
        const { openGpio } = await import(${JSON.stringify(import.meta.resolve('@sluice/hardware'))})
        const shared = new Int32Array((await once(parentPort, 'message'))[0])
        const gpio = await openGpio()
        const watch = { edge: 'rising', onEvent: () => { Atomics.store(shared, 0, 1); Atomics.notify(shared, 0); lines.close() } }
        const lines = await gpio.request(${JSON.stringify(chip.path)}, { offsets: [4], direction: 'input', consumer: 'x', watch })
        parentPort.postMessage('ready')`
      const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(source)}`))
      const shared = new Int32Array(new SharedArrayBuffer(4))
      worker.postMessage(shared.buffer)
      await once(worker, 'message')
      void chip.drive(4, 1)
      // The drive runs in the thread pool. This write lets it start before this thread blocks.
      await writeFile('/dev/null', '')
      assert.notEqual(Atomics.wait(shared, 0, 0, 5000), 'timed-out')
      await once(worker, 'exit')
    },
  },
})
