import { expect, test } from 'vitest'
import { leftOutTools } from './stubs.ts'

test('the tools of a feature that is left out say how to build it in', async () => {
  const stub = leftOutTools([], new Set()).find(({ tool }) => tool.name === 'hardware_memory_read')
  expect(stub).toMatchObject({ feature: 'hardware-probe', build: 'pnpm build full --features probe' })
  const refusal = Promise.resolve(stub?.tool.run({}, undefined as never))
  await expect(refusal).rejects.toMatchObject({
    code: 'not_compiled',
    message: expect.stringContaining('pnpm build full --features probe'),
    fields: { feature: 'hardware-probe' },
  })
})
