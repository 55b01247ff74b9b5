import { spawnSync } from 'node:child_process'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { describe, expect, test } from 'vitest'
import { COMMANDS } from '../command-descriptions.ts'

const sluice = sluiceWith([])

describe('sluice completion', () => {
  test('the bash script completes words, options and values', async () => {
    const { out } = await sluice('completion', 'bash')
    const ask = (line: string) => {
      const words = line.split(' ')
      const script = `${out}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _sluice; echo "\${COMPREPLY[@]}"`
      return spawnSync('bash', ['-c', script], { encoding: 'utf8' }).stdout.trim().split(' ')
    }
    expect(ask('sluice da')).toEqual(['daemon', 'dashboard'])
    expect(ask('sluice config ')).toEqual(expect.arrayContaining(['check', 'get', 'set', 'schema', 'init']))
    expect(ask('sluice daemon --po')).toEqual(['--port'])
    expect(ask('sluice config get gateway.por')).toEqual(['gateway.port'])
    expect(ask('sluice completion f')).toEqual(['fish'])
    expect(ask('sluice pair token --role ')).toEqual(['operator', 'client'])
  })

  test.each(['zsh', 'fish'])('the %s script names every command', async (shell) => {
    const { out } = await sluice('completion', shell)
    for (const { name } of COMMANDS) for (const word of name.split(' ')) expect(out).toContain(word)
  })
})
