/** What holds of a board by its own device tree and the GPIO chip of its own driver. */
import assert from 'node:assert/strict'
import { openGpio } from '@sluice/hardware'
import { type RaspiModel, type VmCase, vmCase } from '@sluice/qa/vm/vm-case'
import { detectBoard } from '../detect-board.ts'
import type { SbcModel } from '../models.ts'

export const realBoard = (machine: RaspiModel, name: SbcModel['name']): VmCase =>
  vmCase({
    machine,
    testTimeoutSecs: 60,
    tests: {
      '§2.7 rule 5: the model is what the device tree says': async () => {
        const board = await detectBoard('/')
        assert.equal(board?.model.name, name)
      },
      'the chip of its header has the label and the lines that are expected': async () => {
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
