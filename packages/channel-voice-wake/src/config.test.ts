import * as v from 'valibot'
import { expect, test } from 'vitest'
import { voiceWakeSection } from './config.ts'

test.each([
  [{ wake_word: '…' }, false],
  [{ wake_word: '' }, false],
  [{ wake_word: 'hey', energy_threshold: 0 }, false],
  [{ wake_word: 'hey', energy_threshold: 2 }, false],
  [{ wake_word: 'hey', device: '--dump-hw-params' }, false],
  [{ wake_word: 'hey', recorder: 'rm' }, false],
  [{ wake_word: 'hey', silence_timeout_ms: 100 }, false],
  [{ wake_word: 'hey', max_capture_secs: 301 }, false],
  [{}, false],
  [{ wake_word: 'hey' }, true],
])('the section %j is valid: %s', (section, isValid) => {
  expect(v.safeParse(voiceWakeSection.schema, section).success).toBe(isValid)
})
