/** I2C, SPI and GPIO by an adapter or the kernel's own buses, and the data sheets of what is connected to them (§2.7 rule 4). */
import { defineFeature } from '@sluice/sdk'
import { buildAdapter } from './build-adapter.ts'
import { adapterSection } from './config.ts'
import { thisMachine } from './find-usb-adapters.ts'
import { lacksNative, nativePackages } from './native.ts'

export default defineFeature({
  id: 'hardware-adapter',
  section: adapterSection,
  build: (host, config) => ({
    ...buildAdapter(host, config, { native: nativePackages, places: { ...thisMachine, dev: '/dev' } }),
    lacks: lacksNative,
  }),
})
