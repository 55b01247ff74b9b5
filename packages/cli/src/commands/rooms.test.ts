/** `sluice rooms try`, next to no daemon. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { expect, onTestFinished, test } from 'vitest'

const ONE = '{"sender":"ann","text":"one"}'

test.each([
  ['that begins with a byte order mark', `\ufeff${ONE}\n${ONE}\n`, 'The channel x is not connected.'],
  ['with lines of Windows and empty ones', `${ONE}\r\n\r\n  ${ONE}\r\n`, 'The channel x is not connected.'],
  ['with a line that is no JSON', `${ONE}\n\ntwo\n`, 'message 2 of the transcript is not JSON'],
])('the lines of a transcript %s are read', async (_name, transcript, answer) => {
  const { dir, dispose } = scratch()
  onTestFinished(dispose)
  const file = join(dir, 'transcript.jsonl')
  writeFileSync(file, transcript)
  const { err } = await sluiceWith([])('rooms', 'try', 'x/bot/room', '--transcript', file, '--data-dir', dir)
  expect(err).toContain(answer)
})
