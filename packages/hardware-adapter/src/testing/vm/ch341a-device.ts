/** The program that serves a simulated CH341A as a virtual USB device. */
import { Ch341aChip } from '../ch341a-chip.ts'
import { serveUsbFunction } from './serve-usb-function.ts'

const chip = new Ch341aChip()
await serveUsbFunction({ vendor: '1a86', product: '5512', answer: (packet) => chip.answer(packet) })
