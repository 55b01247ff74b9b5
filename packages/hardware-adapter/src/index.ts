/** I2C, SPI and GPIO through a USB adapter or the kernel's own buses, and data sheets of parts. See docs/adapter.md. */
import { defineFeature } from '@sluice/sdk'
import { buildAdapter } from './build-adapter.ts'
import { adapterSection } from './config.ts'
import { thisMachine } from './find-adapters.ts'
import { missingNativePackages, nativePackages } from './native.ts'

export default defineFeature({
  id: 'hardware-adapter',
  section: adapterSection,
  build: (host, config) => ({
    ...buildAdapter(host, config, { native: nativePackages, paths: thisMachine }),
    missingRequirement: missingNativePackages,
  }),
})
