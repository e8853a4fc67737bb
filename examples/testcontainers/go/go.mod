module example.com/signup

go 1.26.0
