# ratio.gp - ratio against bound and Huffman by class of tensor; called by plot.sh
#
# data: class, tensors, ratio, bound, Huffman.  Ratios beyond the axis are written at its end.
set terminal pngcairo size 1000, 560 font "sans,11" background "white"
set output output
set datafile separator "\t"
most = 1.85
set xrange [1.1:most]
set yrange [-0.7:rows - 0.3]
set xlabel "ratio: raw bytes over message bytes"
set title title font ",14"
set grid xtics lt 1 lc rgb "#dddddd"
set key at screen 0.62, 0.01 center bottom horizontal maxcols 3
set bmargin at screen 0.16
set xlabel offset 0, 0.3
set border 1
set tics nomirror
inside(x) = x <= most ? x : 1/0
plot data using (inside($4)):0:ytic(sprintf("%s (%d)", strcol(1), $2)) with points pt 2 ps 1.2 lw 2 lc rgb "#888888" title "exponents at their entropy (bound)", \
     data using (inside($5)):0 with points pt 6 ps 1.1 lw 2 lc rgb "#d95f02" title "exponents in Huffman's code", \
     data using (inside($3)):0 with points pt 7 ps 0.9 lc rgb "#1b5e9e" title "zipccl, headers included", \
     data using ($3 > most ? most - 0.005 : 1/0):0:(sprintf("%.2f →", $3)) with labels right tc rgb "#1b5e9e" notitle
