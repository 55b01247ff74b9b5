/** Tests the feature as the daemon builds it, on a machine that identifies itself as a 4B and whose header is not the first chip. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGpioChip } from '@sluice/qa/vm/devices/gpio-chip'
import { becomeSingleBoardComputer } from '@sluice/qa/vm/devices/single-board-computer'
import { type VmTestContext, vmCase } from '@sluice/qa/vm/vm-case'
import type { Parts } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import feature from '../../index.ts'

const createBoard = async () => {
  await createGpioChip({ label: 'expander', lines: 58 })
  return becomeSingleBoardComputer('Raspberry Pi 4 Model B Rev 1.4')
}
let created: ReturnType<typeof createBoard> | undefined
/** Returns the one board of this virtual machine. */
const theBoard = () => {
  created ??= createBoard()
  return created
}

async function arrange({ after }: VmTestContext) {
  const { gpio } = await theBoard()
  const dataDir = await mkdtemp('/tmp/sbc-')
  after(() => rm(dataDir, { recursive: true }))
  const records: unknown[] = []
  const host = testHost({ dataDir, services: { audit: async (record) => void records.push(record) } })
  // Uses the real time, because the test watches the blinking from outside.
  host.clock.sleep = (ms, signal) => sleep(ms, undefined, { signal }).catch(() => undefined)
  const parts: Parts = feature.build(host, {} as never)
  after(() => parts.close?.())
  const run = async (name: string, input: object, signal?: AbortSignal) => {
    const tool = parts.tools?.find((candidate) => candidate.name === name)
    assert.ok(tool)
    return tool.run(v.parse(tool.input, input), toolContext(signal))
  }
  return { gpio, host, parts, run, dataDir, records }
}

export default vmCase({
  modules: ['gpio-sim'],
  tests: {
    'the board is found in the background, with its tools and profile': async (context) => {
      const { host, parts, dataDir } = await arrange(context)
      await parts.register?.(context.signal)
      assert.ok(!parts.tools?.some((tool) => tool.available?.()), 'register waited for the detection')
      while (!parts.tools?.every((tool) => tool.available?.())) await sleep(5)
      assert.deepEqual(host.refreshes, ['found Raspberry Pi 4 Model B Rev 1.4'])
      let profile: string | undefined
      while (profile === undefined) profile = await readFile(`${dataDir}/hardware/devices/sbc0.md`, 'utf8').catch(() => sleep(5, undefined))
      assert.match(profile, /pinctrl-bcm2711, 58 lines/)
      assert.match(parts.prompt?.() ?? '', /model 4B .*CPU 48\.3 °C/)
    },

    'doctor finds the chip of the header': async (context) => {
      const { gpio, parts } = await arrange(context)
      const findings = await parts.check?.(context.signal)
      assert.deepEqual(findings?.slice(0, 2), [
        { status: 'ok', detail: 'model 4B: Raspberry Pi 4 Model B Rev 1.4' },
        { status: 'ok', detail: `pinctrl-bcm2711 with 58 lines is ${gpio.path}` },
      ])
    },

    'a written level stays and is recorded in the audit log': async (context) => {
      const { gpio, run, records } = await arrange(context)
      assert.equal(await run('gpio_sbc_write', { pin: 17, value: 1 }), 'GPIO 17 -> HIGH')
      assert.equal(await gpio.level(17), 1)
      assert.equal(await run('gpio_sbc_read', { pin: 17 }), '{"pin":17,"value":1,"state":"HIGH","direction":"output"}')
      assert.equal(await gpio.level(17), 1)
      assert.equal(records.length, 1)
    },

    'a read does not turn an input into an output': async (context) => {
      const { gpio, run } = await arrange(context)
      await gpio.drive(22, 1)
      assert.equal(await run('gpio_sbc_read', { pin: 22 }), '{"pin":22,"value":1,"state":"HIGH","direction":"input"}')
      await gpio.drive(22, 0)
      assert.equal(await run('gpio_sbc_read', { pin: 22 }), '{"pin":22,"value":0,"state":"LOW","direction":"input"}')
    },

    'an aborted blink ends low at once': async (context) => {
      const { gpio, run } = await arrange(context)
      const abort = new AbortController()
      const blinking = run('gpio_sbc_blink', { pin: 23, times: 5, on_ms: 10_000, off_ms: 10 }, abort.signal)
      while ((await gpio.level(23)) === 0) await sleep(5)
      abort.abort()
      await assert.rejects(blinking, { code: 'aborted' })
      assert.equal(await gpio.level(23), 0)
    },

    'reserved pins and pins of other programs are refused': async (context) => {
      const { run } = await arrange(context)
      const { run: other } = await arrange(context)
      await assert.rejects(run('gpio_sbc_write', { pin: 0, value: 1 }), { code: 'invalid_request' })
      await run('gpio_sbc_write', { pin: 24, value: 1 })
      await assert.rejects(other('gpio_sbc_write', { pin: 24, value: 0 }), { code: 'conflict', message: 'GPIO 24 is in use by sluice' })
    },
  },
})
