/** Tests of an emulated board with its own device tree and GPIO driver. */
import assert from 'node:assert/strict'
import { openGpio } from '@sluice/hardware'
import { type RaspiModel, type VmCase, vmCase } from '@sluice/qa/vm/vm-case'
import { detectBoard, type SbcModel } from '../../detect-board.ts'

export const realBoard = (machine: RaspiModel, name: SbcModel['name']): VmCase =>
  vmCase({
    machine,
    testTimeoutSecs: 60,
    tests: {
      'the model is recognized in the device tree': async () => {
        const board = await detectBoard('/')
        assert.equal(board?.model.name, name)
      },
      'the chip of the header has the expected label and lines': async () => {
        const board = await detectBoard('/')
        const gpio = await openGpio()
        const chips = await gpio.chips()
        const expected = board?.model.chip
        assert.ok(
          chips.some(({ label, lines }) => label === expected?.label && lines === expected.lines),
          JSON.stringify(chips),
        )
      },
    },
  })
