import { expect, test } from 'vitest'
import { stubTools } from './stubs.ts'

test('§7 the tools of a feature that is left out say how to build it in', async () => {
  const tool = stubTools([], []).find(({ name }) => name === 'hardware_memory_read')
  const refusal = Promise.resolve(tool?.run({}, undefined as never))
  await expect(refusal).rejects.toMatchObject({
    code: 'not_compiled',
    message: expect.stringContaining('pnpm build full --features probe'),
    fields: { feature: 'hardware-probe' },
  })
})
