/** What the model is told of the boards at each turn: nothing while there are none. */
import type { Device } from './devices.ts'

const NAMED_MAX = 32

export function devicesPrompt(devices: readonly Device[]): string {
  if (devices.length === 0) return ''
  const lines = devices.slice(0, NAMED_MAX).map(({ alias, board, transport, connected }) => {
    const what = board ? `${board.name} (${board.chip})` : 'a board of no known kind'
    const how = transport === 'serial' ? '' : transport === 'sim' ? ', simulated' : `, ${transport}`
    return `- ${alias}: ${what}${how}, ${connected ? 'connected' : 'not connected'}`
  })
  return ['Hardware devices, by the alias their tools take as `device`:', ...lines].join('\n')
}
