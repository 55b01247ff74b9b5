import { toolConformance } from '@sluice/testkit/tool'
import feature from './index.ts'
import { F401_MEMORY } from './testing/chip-memory.ts'
import { openocdProcess } from './testing/fake-openocd.ts'

toolConformance({
  feature,
  config: { boards: [{ board: 'board_c1', transport: 'serial' }] },
  host: () => ({ spawn: openocdProcess(F401_MEMORY) }),
  examples: [
    { tool: 'hardware_memory_read', input: {} },
    { tool: 'hardware_memory_read', input: { address: '0x08000000', length: 16, board: 'STM32F401RETx' } },
  ],
})
