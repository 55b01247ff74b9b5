import * as v from 'valibot'
import { expect, test } from 'vitest'
import { voiceWakeSection } from './config.ts'

test.each([
  [{ wake_word: '…' }, false],
  [{ wake_word: '' }, false],
  [{ energy_threshold: 0 }, false],
  [{ energy_threshold: 2 }, false],
  [{ device: '--dump-hw-params' }, false],
  [{ recorder: 'rm' }, false],
  [{ silence_timeout_ms: 100 }, false],
  [{ max_capture_secs: 301 }, false],
  [{}, true],
])('the section %j is valid: %s', (section, isValid) => {
  expect(v.safeParse(voiceWakeSection.schema, section).success).toBe(isValid)
})
