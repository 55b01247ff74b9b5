import type { Tool } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { testTool } from '../testing/test-agent.ts'
import { unknownTool } from './unknown-tool.ts'

const named = (...names: string[]) => names.map((name) => testTool(name, () => ''))
const OWN = named('shell', 'shell_wait', 'file_read', 'file_write', 'file_edit', 'grep', 'glob', 'web_fetch', 'memory_store')
const FAR: Tool[] = named(...Array.from({ length: 70 }, (_, at) => `mcp__crm__tool_${at}`)).map((tool) => ({ ...tool, inputSchema: {} }))

describe('unknownTool', () => {
  test.each([
    ['bash', 'shell'],
    ['Bash', 'shell'],
    ['run_shell_command', 'shell'],
    ['write_file', 'file_write'],
    ['str_replace_based_edit_tool', 'file_edit'],
    ['Read', 'file_read'],
    ['MultiEdit', 'file_edit'],
    ['rg', 'grep'],
    ['file_red', 'file_read'],
  ])('names the tool that %s means', (name, meant) => {
    expect(unknownTool(name, [...FAR, ...OWN])).toMatch(new RegExp(`^There is no tool "${name}"\\. Similar names: ${meant}\\b`))
  })

  test('names a few tools, and none that only reports or that another program brings', () => {
    const reports: Tool = { ...testTool('sop_advance', () => ''), reportsOnly: true }
    expect(unknownTool('zzz', [reports, ...FAR, ...OWN])).toBe(
      'There is no tool "zzz". Available tools: shell, shell_wait, file_read, file_write, file_edit and 75 more.',
    )
    expect(unknownTool('sop_advanc', [reports])).toContain('Similar names: sop_advance.')
    expect(unknownTool('zzz', FAR.slice(0, 2))).toContain('Available tools: mcp__crm__tool_0, mcp__crm__tool_1.')
    expect(unknownTool('bash', [])).toBe('There is no tool "bash". There are no tools here.')
  })
})
